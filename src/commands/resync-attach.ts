import type { Fault } from '../model/fault.ts';
import { RelayError } from '../model/fault.ts';
import type { Log } from '../model/log.ts';
import type { Settings } from '../model/settings.ts';
import { lockName } from '../store/leadership.ts';
import { type JobRecord, JobsTable } from '../store/jobs-table.ts';
import { isPaused } from '../store/pause.ts';
import { Session } from '../store/session.ts';
import type { CommandContext } from './command.ts';
import { ExitCode } from './exit-codes.ts';
import { type Problem, problemOf } from './problem.ts';
import { Bar } from './progress.ts';
import { leadForAWhile } from './resync-engine.ts';
import { jobText, progressText, reportedJob } from './resync-report.ts';
import { ageText, countText } from './text.ts';

const POLL_MS = 500;
/** A relay that is started again takes less: so long nobody must have led before the command does. */
const LEADERLESS_MS = 3_000;
/** MySQL may be away for so long. */
const PATIENCE_MS = 60_000;
const LINE_EVERY_MS = 5_000;
/** Over which the rate is measured. */
const RATE_MS = 10_000;
/** Beside the bar. */
const TEXT_COLUMNS = 100;

/**
 * Shows a job until it has ended. Where no relay leads, this process does until then. Ctrl-C ends only the watching, or
 * the leading: the job goes on with the next leader. `wasLeaderless`: nobody led before the job was there, so a lock that
 * is free now is not that of a leader who begins anew for it.
 */
export async function attach(id: bigint, context: CommandContext, wasLeaderless = false): Promise<ExitCode | Problem> {
  const { settings, log, note, options, print } = context;
  const table = new JobsTable(settings);
  const view = new JobView(id, context);
  const detach = new AbortController();
  const engine = new Engine(context, wasLeaderless);
  const onSignal = (): void => {
    if (detach.signal.aborted) process.exit(ExitCode.Interrupted);
    detach.abort();
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  let session: Session | null = null;
  let awaySinceMs: number | null = null;
  let job: JobRecord | null = null;
  let wasPaused = false;
  try {
    while (!detach.signal.aborted) {
      try {
        session ??= await Session.open(settings.mysql, log);
        job = await table.find(session, id);
        if (job === null) return noSuchJob(id);
        view.show(job);
        if (isOver(job)) break;
        const nowPaused = (await isPaused(session, settings)) === true;
        if (nowPaused && !wasPaused) note(`the relay is paused: job ${id} waits until cdc-relay resume`);
        wasPaused = nowPaused;
        await engine.leadIfNobodyDoes(session);
        awaySinceMs = null;
      } catch (error) {
        if (!(error instanceof RelayError) || error.fault.disposition !== 'retry') throw error;
        awaySinceMs ??= performance.now();
        if (performance.now() - awaySinceMs > PATIENCE_MS) throw error;
        session?.destroy();
        session = null;
      }
      if (engine.fault !== null) return problemOf(engine.fault, settings, { effect: goesOn(id) });
      await sleep(POLL_MS, detach.signal);
    }
  } finally {
    view.stop();
    session?.destroy();
    await engine.stop();
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
  if (job === null || !isOver(job)) {
    note(goesOn(id));
    return ExitCode.Interrupted;
  }
  if (options['json'] !== true) print(jobText(job));
  const failed = job.progress !== null && 'failed' in job.progress ? job.progress.failed : 0;
  return job.state === 'done' && failed === 0 ? ExitCode.Good : ExitCode.Failure;
}

export async function isLeaderless(session: Session, settings: Settings): Promise<boolean> {
  const lock = lockName(settings.mysql.database, settings.relay.name);
  const [row] = await session.rows('looking for the leader', 'SELECT IS_FREE_LOCK(?) AS is_free', [lock]);
  return Number(row['is_free']) === 1;
}

export function noSuchJob(id: bigint): Problem {
  return { exitCode: ExitCode.Usage, headline: `there is no job ${id}`, fix: 'cdc-relay resync list' };
}

function goesOn(id: bigint): string {
  return `job ${id} stays and goes on where a relay leads; watch it: cdc-relay resync attach ${id}; end it: cdc-relay resync cancel ${id}`;
}

function isOver({ state }: JobRecord): boolean {
  return state !== 'queued' && state !== 'running';
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done, { once: true });
  });
}

/** The relay in this process, once nobody else leads. */
class Engine {
  readonly #context: CommandContext;
  readonly #stop = new AbortController();
  #freeSinceMs: number | null = null;
  #leadsAtOnce: boolean;
  #running: Promise<void> | null = null;
  fault: Fault | null = null;

  constructor(context: CommandContext, leadsAtOnce: boolean) {
    this.#context = context;
    this.#leadsAtOnce = leadsAtOnce;
  }

  async leadIfNobodyDoes(session: Session): Promise<void> {
    if (this.#running !== null) return;
    const { settings, note, log } = this.#context;
    if (!(await isLeaderless(session, settings))) {
      this.#freeSinceMs = null;
      this.#leadsAtOnce = false;
      return;
    }
    this.#freeSinceMs ??= performance.now();
    if (!this.#leadsAtOnce && performance.now() - this.#freeSinceMs < LEADERLESS_MS) return;
    note('no relay leads: this command does until the job is done');
    this.#running = leadForAWhile(settings, process.stderr.isTTY ? onlyWarnings(log) : log, this.#stop.signal).then(
      (fault) => {
        this.fault = fault;
      },
    );
    // Told where it is waited for.
    this.#running.catch(() => undefined);
  }

  /** Softly: what is on its way is settled. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }
}

/** Beside a bar on the same terminal. */
function onlyWarnings(log: Log): Log {
  const nothing = (): void => undefined;
  return {
    debug: nothing,
    info: nothing,
    warn: (event, fields) => log.warn(event, fields),
    error: (event, fields) => log.error(event, fields),
    child: (fields) => onlyWarnings(log.child(fields)),
  };
}

/** A bar with rate and time left on a terminal; lines, or JSON, elsewhere. */
class JobView {
  readonly #context: CommandContext;
  readonly #isJson: boolean;
  readonly #bar: Bar | null;
  readonly #samples: { readonly atMs: number; readonly done: number }[] = [];
  #told = '';
  #toldMs = -Infinity;

  constructor(id: bigint, context: CommandContext) {
    this.#context = context;
    this.#isJson = context.options['json'] === true;
    const isQuiet = context.options['quiet'] === true;
    this.#bar =
      process.stderr.isTTY && !isQuiet && !this.#isJson
        ? new Bar(`{bar}  {percentage} %  {what}   job ${id} (Ctrl-C leaves it running)`, TEXT_COLUMNS, 1, { what: '' })
        : null;
  }

  show(job: JobRecord): void {
    const reported = reportedJob(job);
    const nowMs = performance.now();
    const text = JSON.stringify({ version: 1, job: reported });
    if (this.#isJson) {
      if (text !== this.#told) this.#context.print(text);
      this.#told = text;
      return;
    }
    const { done, total } = steps(job);
    const what = `${progressText(reported)}${this.#rate(nowMs, done, total)}`;
    if (this.#bar !== null) {
      this.#bar.update(Math.min(done, Math.max(1, total)), { what }, Math.max(1, total));
    } else if (nowMs - this.#toldMs >= LINE_EVERY_MS && what !== this.#told) {
      this.#context.note(`job ${job.id} ${job.state}: ${what}`);
      this.#told = what;
      this.#toldMs = nowMs;
    }
  }

  stop(): void {
    this.#bar?.stop();
  }

  #rate(nowMs: number, done: number, total: number): string {
    const samples = this.#samples;
    samples.push({ atMs: nowMs, done });
    while (samples.length > 2 && nowMs - samples[0].atMs > RATE_MS) samples.shift();
    const rate = ((done - samples[0].done) * 1000) / Math.max(1, nowMs - samples[0].atMs);
    if (rate <= 0 || total <= done) return '';
    return `   ${countText(Math.round(rate))} rows/s   ${ageText(((total - done) / rate) * 1000)} left`;
  }
}

function steps({ progress }: JobRecord): { readonly done: number; readonly total: number } {
  if (progress === null) return { done: 0, total: 0 };
  if ('hasBegun' in progress) {
    const total = Math.max(progress.pendingAtFirst, progress.pending);
    return { done: total - progress.pending, total };
  }
  return { done: progress.sent + progress.gone + progress.failed, total: progress.total ?? 0 };
}
