import { pino, stdTimeFunctions, type DestinationStream, type Logger } from 'pino';
import type { Log, LogFields, LogLevel, LogSettings } from '../model/log.ts';
import type { KnownSecrets } from '../model/secret.ts';
import { scrubber } from './scrub.ts';

export interface LogOutput {
  /** Values that must not appear in any line. */
  readonly secrets: KnownSecrets;
  readonly isTerminal: boolean;
  readonly color: boolean;
  /** Stderr when absent, written synchronously: the last lines before an exit are the ones that matter. */
  readonly destination?: DestinationStream;
}

/** The log of a process. */
export interface ProcessLog extends Log {
  /** To level debug, and back to what was configured; tells it whatever the level is. */
  toggleDebug(): void;
}

/** Of lines that wait for room. */
const KEPT_BYTES = 1_048_576;

/** One line per event: `{"level":"info","time":"2026-11-30T10:02:11.482Z",…fields,"event":"relay-started"}`. */
export async function createLog(settings: LogSettings, output: LogOutput): Promise<ProcessLog> {
  const pretty = settings.format === 'pretty' || (settings.format === 'auto' && output.isTerminal);
  const destination = output.destination ?? standardError();
  const logger = pino(
    {
      level: 'debug',
      messageKey: 'event',
      timestamp: stdTimeFunctions.isoTime,
      base: null,
      serializers: { err: (err: unknown) => err },
      formatters: { level: (label) => ({ level: label }) },
    },
    pretty ? await prettyStream(destination, output.color) : destination,
  );
  const configured = settings.level;
  // Shared by all children: pino's own levels are each child's.
  const threshold = { level: configured };
  const log = wrap(logger, scrubber(output.secrets), threshold);
  return {
    ...log,
    toggleDebug() {
      const to = threshold.level === 'debug' ? configured : 'debug';
      threshold.level = 'debug';
      log.info('log-level', { to, configured });
      threshold.level = to;
    },
  };
}

/**
 * A log that cannot be written (its disk is full) ends nothing. The lines of that time are kept, as far as there is
 * room, and written with the next one that can be.
 */
function standardError(): DestinationStream {
  return pino.destination({ fd: 2, sync: true, maxLength: KEPT_BYTES }).on('error', () => undefined);
}

/** Loaded only where a person reads: it costs a service's start nothing. */
async function prettyStream(destination: DestinationStream, color: boolean): Promise<DestinationStream> {
  const { prettyFactory } = await import('pino-pretty');
  const format = prettyFactory({
    colorize: color,
    messageKey: 'event',
    translateTime: 'UTC:HH:MM:ss.l',
    singleLine: true,
  });
  return { write: (line) => destination.write(format(line)) };
}

const RANKS: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

function wrap(
  logger: Logger,
  scrub: (fields: LogFields) => Record<string, unknown>,
  threshold: { readonly level: LogLevel },
): Log {
  const at =
    (level: LogLevel) =>
    (event: string, fields?: LogFields): void => {
      if (RANKS[level] < RANKS[threshold.level]) return;
      if (fields === undefined) logger[level](event);
      else logger[level](scrub(fields), event);
    };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => wrap(logger.child(scrub(fields)), scrub, threshold),
  };
}
