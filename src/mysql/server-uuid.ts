/** Answers with what `serverUuidIn` reads. MariaDB has no server_uuid: its server id must do. */
export const SERVER_UUID = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'server_id')";

export function serverUuidIn(rows: unknown): string {
  const variables = rows as readonly { readonly Variable_name: string; readonly Value: string }[];
  const values = new Map(variables.map((row) => [row.Variable_name, row.Value]));
  return values.get('server_uuid') ?? `mariadb-${values.get('server_id') ?? ''}`;
}
