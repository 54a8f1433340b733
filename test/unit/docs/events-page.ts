import { format, resolveConfig } from 'prettier';
import { EVENTS, type LoggedEvent } from '../../../src/observability/events.ts';

const HEAD = `# Events of the log

The log is one JSON object a line on stderr (\`log.format\`; on a terminal, lines for people): \`level\`, \`time\` (UTC),
the fields of the event, \`event\`. The names below are stable: alerts may be built on them. Every change of state is told
once, when it happens; what is tried again and again is told the first time. This page is made from the source:
\`npm run test:unit -- events-page -u\` writes it, and the same test keeps it true.

| Level   | What                                                                                           |
| ------- | ---------------------------------------------------------------------------------------------- |
| \`error\` | A person must know of it: the relay has ended, or goes on with less than it should.            |
| \`warn\`  | Something is not as it should be. The relay goes on by itself; rows may have to wait, or failed. |
| \`info\`  | What an operator expects to see: states, connections, jobs. A few lines for a start, none when idle. |
| \`debug\` | What helps to find a fault: each attempt, each connection, the words of the Kafka client.      |

The level is \`log.level\`, \`--log-level\`, \`CDC_RELAY_LOG_LEVEL\` or, where none of them is given, \`LOG_LEVEL\`. SIGUSR2
changes it while the relay runs, without a restart: to \`debug\`, and back. There is no level below \`debug\`: payloads, keys,
headers and secrets are never logged. A row that fails is named by its table and primary key.
`;

/** `docs/events.md`, as prettier has it. */
export async function eventsPage(): Promise<string> {
  const sections = Object.entries(EVENTS).map(([area, events]: [string, Readonly<Record<string, LoggedEvent>>]) => {
    const rows = Object.entries(events).map(([name, { level, fields, when }]) => {
      const named = fields.map((field) => `\`${field}\``).join(', ');
      return `| \`${name}\` | ${[level].flat().join(', ')} | ${named} | ${when} |`;
    });
    const title = `${area[0].toUpperCase()}${area.slice(1)}`;
    return `## ${title}\n\n| Event | Level | Fields | When |\n| --- | --- | --- | --- |\n${rows.join('\n')}\n`;
  });
  const options = await resolveConfig(import.meta.filename);
  return format(`${HEAD}\n${sections.join('\n')}`, { ...options, parser: 'markdown' });
}
