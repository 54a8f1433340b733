import { request } from 'node:http';
import { relayStatusSchema, type RelayStatus } from '../../../src/http/status-view.ts';

export interface Answer {
  readonly code: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

export interface Ask {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** One request on a connection of its own. */
export function ask(port: number, path: string, { method = 'GET', headers = {}, body }: Ask = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asking = request({ host: '127.0.0.1', port, path, method, headers, agent: false }, (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (chunk: string) => (text += chunk));
      answer.on('end', () => resolve({ code: answer.statusCode!, headers: answer.headers, body: text }));
      answer.on('error', reject);
    });
    asking.on('error', reject);
    asking.end(body);
  });
}

/** What the relay says of itself; null while it does not answer. */
export class Relayed {
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
  }

  ask(path: string, how: Ask = {}): Promise<Answer> {
    return ask(this.#port, path, how);
  }

  async ready(): Promise<{ ready: boolean; state: string; reasons: string[] } | null> {
    try {
      return JSON.parse((await this.ask('/readyz')).body) as { ready: boolean; state: string; reasons: string[] };
    } catch {
      return null;
    }
  }

  async isReady(): Promise<boolean> {
    return (await this.ready())?.ready === true;
  }

  async status(): Promise<RelayStatus> {
    return relayStatusSchema.parse(JSON.parse((await this.ask('/status')).body));
  }

  /** Samples by name and labels: `cdc_relay_rows_total{outbox="a.b",way="tail"}`. */
  async metrics(): Promise<Map<string, number>> {
    const { body } = await this.ask('/metrics');
    const samples = body.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return new Map(
      samples.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
    );
  }

  async metric(sample: string): Promise<number | undefined> {
    return (await this.metrics()).get(sample);
  }
}
