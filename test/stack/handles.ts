import type { Controls } from './server.ts';

export interface MysqlOptions {
  readonly serverId?: number;
  /** Further server flags, `--name=value`. */
  readonly flags?: readonly string[];
  /** Flush to disk at each commit, as a production server does. Default: false, for speed. */
  readonly durable?: boolean;
}

export interface MysqlServer extends Controls, AsyncDisposable {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  /** As the server says it: `9.7.4-2`, `10.11.14-MariaDB…`. */
  readonly version: string;
  /** Stops the server for good and removes its data. */
  dispose(): Promise<void>;
}

export interface KafkaOptions {
  /** Default 1. */
  readonly brokers?: 1 | 2 | 3;
  /** Further broker properties, for every broker. */
  readonly properties?: Readonly<Record<string, string>>;
}

export interface Broker extends Controls {
  readonly id: number;
  /** `host:port` of its plain listener. */
  readonly address: string;
}

export interface KafkaCluster extends AsyncDisposable {
  /** `host:port` of every broker's plain listener. */
  readonly brokers: readonly string[];
  readonly version: string;
  /** False for a cluster at given addresses; `nodes` is empty then. */
  readonly controllable: boolean;
  readonly nodes: readonly Broker[];
  dispose(): Promise<void>;
}
