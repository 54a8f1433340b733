import { z } from 'zod';
import { lookAtCluster } from '../kafka/cluster-look.ts';
import { RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import type { Settings } from '../model/settings.ts';
import { checkMysql, type MysqlCheck } from './check-mysql.ts';
import { AREAS, type Finding, sorted } from './finding.ts';
import { httpFindings } from './http-address.ts';
import { brokerFindings, noClusterFindings } from './kafka-brokers.ts';
import { configuredTopics, topicFindings } from './kafka-topics.ts';
import { noServerFindings } from './mysql-connection.ts';

/** What `check --json` prints. Fields may be added; a changed meaning raises `version`. */
export const checkSchema = z.object({
  version: z.literal(1),
  name: z.string(),
  /** Null where it could not be asked. */
  server: z.object({ address: z.string(), uuid: z.string(), version: z.string(), account: z.string() }).nullable(),
  /** False: Kafka could not be asked. */
  kafka: z.boolean(),
  counts: z.object({ errors: z.number(), warnings: z.number(), unknown: z.number(), good: z.number() }),
  findings: z.array(
    z.object({
      severity: z.enum(['error', 'warning', 'unknown', 'good']),
      area: z.enum(AREAS),
      check: z.string(),
      fact: z.string(),
      effect: z.string().nullable(),
      fix: z.string().nullable(),
      stopsTail: z.boolean(),
    }),
  ),
  /** Null: it did not come by, or was not written. */
  canary: z.object({ writtenAt: z.string(), afterMs: z.number() }).nullable(),
});
export type CheckReport = z.infer<typeof checkSchema>;

/** Every prerequisite of the relay, looked at once. Does not throw for what it finds. */
export async function check(settings: Settings, log: Log): Promise<CheckReport> {
  const quiet = quietly(log);
  let mysql: MysqlCheck | null = null;
  const findings: Finding[] = [];
  try {
    mysql = await checkMysql(settings, quiet);
    findings.push(...mysql.findings);
  } catch (error) {
    if (!(error instanceof RelayError)) throw error;
    findings.push(...noServerFindings(error.fault, settings.mysql));
  }
  const cluster = await checkKafka(settings, mysql?.topics ?? [], quiet);
  findings.push(...cluster.findings, ...httpFindings(settings.http));
  const { host, port } = settings.mysql;
  const count = (severity: Finding['severity']) => findings.filter((finding) => finding.severity === severity).length;
  return {
    version: 1,
    name: settings.relay.name,
    server:
      mysql === null
        ? null
        : {
            address: `${host}:${port}`,
            uuid: mysql.server.uuid,
            version: mysql.server.version.text,
            account: mysql.server.account,
          },
    kafka: cluster.isThere,
    counts: { errors: count('error'), warnings: count('warning'), unknown: count('unknown'), good: count('good') },
    findings: sorted(findings),
    canary:
      mysql?.canary?.as === 'came by' ? { writtenAt: mysql.canary.writtenAt, afterMs: mysql.canary.afterMs } : null,
  };
}

async function checkKafka(
  settings: Settings,
  seen: readonly string[],
  log: Log,
): Promise<{ isThere: boolean; findings: Finding[] }> {
  const topics = [...new Set([...configuredTopics(settings), ...seen])];
  try {
    const look = await lookAtCluster(settings.kafka, topics, log);
    return { isThere: true, findings: [...brokerFindings(look, settings.kafka), ...topicFindings(look, settings)] };
  } catch (error) {
    if (!(error instanceof RelayError)) throw error;
    return { isThere: false, findings: noClusterFindings(error.fault, settings.kafka) };
  }
}

/** The report says it all; what the parts say beside it is for who asks for it. */
function quietly(log: Log): Log {
  const debug: Log['debug'] = (event, fields) => log.debug(event, fields);
  return { debug, info: debug, warn: debug, error: debug, child: (fields) => quietly(log.child(fields)) };
}
