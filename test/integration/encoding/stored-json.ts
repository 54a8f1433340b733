import ZongJi from '@vlasky/zongji';
import type { TestBed } from '../../stack/test-bed.ts';
import { until } from '../../stack/until.ts';

/** MySQL's code for columns whose bytes are to be left as they are. */
const BLOB = 252;

interface Column {
  type: number;
  charset: unknown;
  metadata?: object;
}

interface Row {
  id: string | number;
  doc: Buffer;
}

/** What zongji's events hold of what is needed here. */
interface RowEvent {
  readonly tableId: number;
  readonly tableMap: Record<number, { columns?: (Column & { name: string })[] } | undefined>;
  readonly rows?: (Row | { after: Row })[];
  getEventName(): string;
}

/**
 * The binary JSON of `doc` by `id` as it was last logged for `table`, from `from` on: read with zongji, whose own JSON
 * decoder is kept away from it. Waits until the row whose id is `lastId` has been read.
 */
export async function storedJson(
  bed: TestBed,
  table: string,
  from: { file: string; offset: number },
  lastId: number,
): Promise<Map<number, Buffer>> {
  const { host, port, user, password } = bed.mysql;
  const zongji = new ZongJi({ host, port, user, password });
  const stored = new Map<number, Buffer>();
  let failure: Error | null = null;
  zongji.on('error', (error: Error) => (failure = error));
  zongji.on('binlog', (event: unknown) => {
    const { tableId, tableMap, rows } = event as RowEvent;
    if ((event as RowEvent).getEventName() === 'tablemap') {
      for (const column of tableMap[tableId]?.columns ?? []) {
        if (column.name === 'doc')
          Object.assign(column, { type: BLOB, charset: null, metadata: column.metadata ?? {} });
      }
    }
    for (const row of rows ?? []) {
      const { id, doc } = 'after' in row ? row.after : row;
      stored.set(Number(id), Buffer.from(doc));
    }
  });
  zongji.start({
    serverId: bed.serverId,
    filename: from.file,
    position: from.offset,
    includeEvents: ['tablemap', 'writerows', 'updaterows', 'rotate'],
    includeSchema: { [bed.database]: [table] },
  });
  try {
    await until(
      () => {
        if (failure !== null) throw failure;
        return stored.has(lastId);
      },
      { withinMs: 30_000, what: `row ${lastId} of ${table} in the binlog` },
    );
  } finally {
    zongji.stop();
  }
  return stored;
}
