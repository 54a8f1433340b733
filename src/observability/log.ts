import { pino, stdTimeFunctions, type DestinationStream, type Logger } from 'pino';
import type { Log, LogFields, LogSettings } from '../model/log.ts';
import { scrubber } from './scrub.ts';

export interface LogOutput {
  /** Values that must not appear in any line. */
  readonly secrets: readonly string[];
  readonly isTerminal: boolean;
  readonly color: boolean;
  /** Stderr when absent, written synchronously: the last lines before an exit are the ones that matter. */
  readonly destination?: DestinationStream;
}

/** One line per event: `{"level":"info","time":"2026-11-30T10:02:11.482Z",…fields,"event":"relay-started"}`. */
export async function createLog(settings: LogSettings, output: LogOutput): Promise<Log> {
  const pretty = settings.format === 'pretty' || (settings.format === 'auto' && output.isTerminal);
  const destination = output.destination ?? pino.destination({ fd: 2, sync: true });
  const logger = pino(
    {
      level: settings.level,
      messageKey: 'event',
      timestamp: stdTimeFunctions.isoTime,
      base: null,
      serializers: { err: (err: unknown) => err },
      formatters: { level: (label) => ({ level: label }) },
    },
    pretty ? await prettyStream(destination, output.color) : destination,
  );
  return wrap(logger, scrubber(output.secrets));
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

function wrap(logger: Logger, scrub: (fields: LogFields) => Record<string, unknown>): Log {
  const at =
    (level: 'debug' | 'info' | 'warn' | 'error') =>
    (event: string, fields?: LogFields): void => {
      if (!logger.isLevelEnabled(level)) return;
      if (fields === undefined) logger[level](event);
      else logger[level](scrub(fields), event);
    };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => wrap(logger.child(scrub(fields)), scrub),
  };
}
