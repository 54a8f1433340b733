import { parseArgs } from 'node:util';
import { drain } from './drain.ts';
import { idle } from './idle.ts';
import { latency } from './latency.ts';

const USAGE = `npm run bench -- COMMAND [options]: measures the built relay on servers of its own; one line of JSON.

  drain    a backlog is worked off      --rows 300000 --per-transaction 500
  latency  commit to consumer           --rate 500 --seconds 15
  idle     what a relay without work costs              --seconds 20

  all      --retire keep|mark|delete (mark) --compression none|gzip|zstd (none)

MySQL runs with relaxed durability (no flush to disk at each commit), so that the relay is measured and not the disk.
`;

const { command, values } = readArguments();
const { compression } = values;
const retire = oneOf('retire', values.retire, ['keep', 'mark', 'delete']);
const result = await measure();
process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit(0); // kafkajs's clients leave timers behind

function readArguments() {
  try {
    const { positionals, values } = parseArgs({
      allowPositionals: true,
      options: {
        rows: { type: 'string', default: '300000' },
        'per-transaction': { type: 'string', default: '500' },
        rate: { type: 'string', default: '500' },
        seconds: { type: 'string' },
        retire: { type: 'string', default: 'mark' },
        compression: { type: 'string', default: 'none' },
      },
    });
    return { command: positionals.length === 1 ? positionals[0] : '', values };
  } catch (error) {
    return wrong(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
  }
}

function measure(): Promise<Record<string, unknown>> {
  switch (command) {
    case 'drain': {
      const rows = whole('rows', values.rows);
      return drain({ rows, perTransaction: whole('per-transaction', values['per-transaction']), retire, compression });
    }
    case 'latency': {
      const seconds = whole('seconds', values.seconds ?? '15');
      return latency({ rate: whole('rate', values.rate), seconds, retire, compression });
    }
    case 'idle':
      return idle({ seconds: whole('seconds', values.seconds ?? '20'), retire, compression });
    default:
      return wrong(USAGE);
  }
}

function whole(name: string, text: string): number {
  const value = Number(text);
  return Number.isSafeInteger(value) && value > 0 ? value : wrong(`--${name} takes a whole number above 0\n`);
}

function oneOf<const T extends string>(name: string, text: string, choices: readonly T[]): T {
  return choices.find((choice) => choice === text) ?? wrong(`--${name} is one of ${choices.join(', ')}\n`);
}

function wrong(message: string): never {
  process.stderr.write(message);
  process.exit(2);
}
