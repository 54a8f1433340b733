import { readFile } from 'node:fs/promises';
import { Adoption, type Looked } from '../adopt/adoption.ts';
import { type DebeziumOffset, lastOfEach, OffsetProblem, pickOffset } from '../adopt/debezium-offset.ts';
import { type MapEntry, readJavaMap } from '../adopt/java-map.ts';
import { parseTableName } from '../config/table-name.ts';
import { readRecordSet } from '../encoding/record-set.ts';
import { Isolation } from '../kafka/fetch-request.ts';
import { TopicReader } from '../kafka/topic-reader.ts';
import { RelayError } from '../model/fault.ts';
import type { CommandBody, CommandContext } from './command.ts';
import { confirmed } from './confirm.ts';
import { adoptReport, doneText, planText } from './adopt-report.ts';
import { ExitCode } from './exit-codes.ts';
import { textOption } from './option-values.ts';
import { type Problem, problemOf, usageError } from './problem.ts';
import { escapedText } from './text.ts';

/** Makes an existing table an outbox of the relay: history counts as published, news is delivered. */
export const adopt: CommandBody = async (context) => {
  const { settings, log, options, args, print, note } = context;
  const name = parseTableName(args[0]);
  if (name === null) throw usageError(`${escapedText(args[0])} names no table`, 'schema.table');
  const [schema, table] = [name.schema ?? settings.mysql.database, name.table];
  const debezium = await debeziumOffset(context);
  const adoption = await Adoption.open({
    ...{ settings, schema, table, debezium, log },
    onStep: (text) => note(escapedText(text)),
  });
  try {
    const looked = await adoption.look();
    const full = `${schema}.${table}`;
    if (looked === null) throw usageError(`there is no table ${escapedText(full)}, or it is not shown to this user`);
    const asJson = options['json'] === true;
    const plan = adoptReport(full, looked, debezium, null);
    if (!asJson) print(planText(plan, settings.relay.name));
    const refusal = refusalOf(full, looked, debezium);
    if (options['dryRun'] === true || refusal !== null) {
      if (asJson) print(JSON.stringify(plan));
      return refusal ?? ExitCode.Good;
    }
    if (!(await confirmed(options, `adopt ${escapedText(full)}`))) {
      note('nothing was done');
      return ExitCode.Failure;
    }
    const adopted = await adoption.carryOut(looked);
    const report = adoptReport(full, looked, debezium, adopted);
    print(asJson ? JSON.stringify(report) : doneText(report));
    return (adopted.unsent?.gone ?? 0) > 0 ? ExitCode.Failure : ExitCode.Good;
  } catch (error) {
    if (error instanceof RelayError) return explained(error, context, schema, table);
    throw error;
  } finally {
    adoption.close();
  }
};

/** Why it is not done, though it could be planned. */
function refusalOf(table: string, { mapping, saved, unsent }: Looked, debezium: DebeziumOffset | null): Problem | null {
  const name = escapedText(table);
  if (mapping.problems.length > 0) {
    return {
      exitCode: ExitCode.Usage,
      headline: `${name} cannot be adopted as it is`,
      fix: mapping.problems.map((problem) => escapedText(problem)).join('\n'),
    };
  }
  if (saved !== null && debezium !== null) {
    return {
      exitCode: ExitCode.Usage,
      headline: 'this relay has a position already: what Debezium has not sent would be passed over',
      fix: 'adopt with another name of the relay, or before its first start',
    };
  }
  if (unsent !== null && unsent.gone > 0) {
    return {
      exitCode: ExitCode.Failure,
      headline: `${unsent.gone} rows that Debezium has not sent are not in ${name} any more: nobody would send them`,
      fix: 'let the connector come to the end of the log, stop it, and adopt then',
    };
  }
  return null;
}

async function debeziumOffset(context: CommandContext): Promise<DebeziumOffset | null> {
  const { options } = context;
  const [file, topic] = [textOption(options, 'fromDebeziumOffset'), textOption(options, 'fromDebeziumTopic')];
  const connector = textOption(options, 'connector');
  if (file !== null && topic !== null) {
    throw usageError('--from-debezium-offset and --from-debezium-topic: one of them');
  }
  if (file === null && topic === null) {
    if (connector !== null) throw usageError('--connector goes with --from-debezium-offset or --from-debezium-topic');
    return null;
  }
  const where = escapedText(file ?? topic!);
  try {
    return pickOffset(file !== null ? readJavaMap(await readFile(file)) : await topicOf(context, topic!), connector);
  } catch (error) {
    if (error instanceof OffsetProblem || error instanceof RangeError) throw usageError(`${where}: ${error.message}`);
    if (error instanceof Error && 'code' in error) throw usageError(`${where}: cannot be read: ${String(error.code)}`);
    throw error;
  }
}

/** The offsets topic of Kafka Connect. With exactly-once sources offsets are written in transactions, of which some end in vain. */
async function topicOf({ settings, log }: CommandContext, topic: string): Promise<MapEntry[]> {
  const reader = new TopicReader(settings.kafka, log, Isolation.Committed);
  const records: MapEntry[] = [];
  try {
    const shape = await reader.shape(topic);
    if (shape === null) throw new OffsetProblem('there is no such topic');
    for (let partition = 0; partition < shape.partitions; partition++) {
      const end = await reader.endOffset(topic, partition);
      for (let at = await reader.firstOffset(topic, partition); at < end;) {
        const set = await reader.fetch(topic, partition, at);
        const add = ({ key, value }: MapEntry): unknown => records.push({ key, value });
        const next = set === null ? end : readRecordSet(set.records, at, add, set.aborted);
        at = next === at ? end : next;
      }
    }
  } finally {
    reader.close();
  }
  return lastOfEach(records);
}

function explained(error: RelayError, { settings }: CommandContext, schema: string, table: string): Problem {
  const problem = problemOf(error.fault, settings, {
    effect: 'what was done before this stays, no row counts as pending by it; adopt can be run again',
  });
  switch (error.fault.code) {
    case 'MYSQL_ACCESS_DENIED':
      return {
        ...problem,
        fix: `GRANT SELECT, INSERT, UPDATE, ALTER, INDEX, LOCK TABLES ON \`${schema}\`.* TO the relay's user`,
      };
    case 'MYSQL_LOCK_WAIT':
      return {
        ...problem,
        fix: `end what holds ${schema}.${table} (a backup, an open transaction), then run it again`,
      };
    case 'MYSQL_QUERY_FAILED':
      return {
        ...problem,
        fix: 'where the table takes no columns at once, run the statements of --dry-run by your online schema change, then adopt again',
      };
    default:
      return problem;
  }
}
