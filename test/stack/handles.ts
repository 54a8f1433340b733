/** What tests get: servers by address, and what may be done to them. The same wherever the servers come from. */

/** What a test may do to one server. Each call ends when it has taken effect; `start` when clients are served. */
export interface Controls {
  /** False for a server at a given address: every other call throws then. */
  readonly controllable: boolean;
  /** Of the server's process; null while it is down, in a container, or not ours. */
  readonly pid: number | null;
  /** SIGSTOP: connections stay open and nothing answers. */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** SIGTERM, and SIGKILL when that takes over 30 s. */
  stop(): Promise<void>;
  /** Again on the same port and data, after `kill` or `stop`. */
  start(): Promise<void>;
}

/** PEM texts: a certificate with its private key, and the authority that signed it. */
export interface Certificate {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export interface DatabaseOptions {
  /** Default 1; 2 for a replica. */
  readonly serverId?: number;
  /** Further server flags, `--name=value`. */
  readonly flags?: readonly string[];
  /** Flush to disk at each commit, as a production server does. Default: false, for speed. */
  readonly durable?: boolean;
  /** For TLS. Without it MySQL has one that it made itself, whose host name never matches; MariaDB has none. */
  readonly certificate?: Certificate;
}

export interface MysqlOptions extends DatabaseOptions {
  /** Starts as its replica, caught up when this returns. */
  readonly replicaOf?: DatabaseServer;
  /** How it finds its place there; default: by GTID. */
  readonly replicaBy?: 'gtid' | 'file';
}

/** A MySQL or MariaDB with GTIDs, row format and full row metadata; the user may do everything, from anywhere. */
export interface DatabaseServer extends Controls, AsyncDisposable {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  /** As the server says it: `9.7.4-2`, `10.11.14-MariaDB…`. */
  readonly version: string;
  /** Where another server of the stack reaches it. */
  readonly internal: { readonly host: string; readonly port: number };
  /** Stops the server for good and removes its data. */
  dispose(): Promise<void>;
}

export type SaslMechanism = 'plain' | 'scram-sha-256' | 'scram-sha-512' | 'oauthbearer';

export interface SecureListener {
  /** `mutual`: the client must show a certificate of the same authority. Needs `KafkaOptions.certificate`. */
  readonly tls?: 'server' | 'mutual';
  /** OAUTHBEARER takes any unsecured token (`alg: none`) that has not expired. */
  readonly sasl?: SaslMechanism;
  /**
   * `host:port` of a proxy in front of this listener, by broker: what clients are told instead of where it is
   * (`KafkaCluster.listener`).
   */
  readonly through?: readonly string[];
}

export interface KafkaOptions {
  /** Default 1. Of two, only the first is a controller: it must be up for leaders to move. */
  readonly brokers?: 1 | 2 | 3;
  /** Further broker properties, for every broker. */
  readonly properties?: Readonly<Record<string, string>>;
  /** Listeners beside the plain one, by a name of letters and digits. */
  readonly listeners?: Readonly<Record<string, SecureListener>>;
  readonly certificate?: Certificate;
}

/** The one user of every SASL listener but OAUTHBEARER's. */
export const KAFKA_USER = { username: 'relay', password: 'relay-password' };

export interface Broker extends Controls {
  /** The broker's id in the cluster's metadata: 1, 2, 3. */
  readonly id: number;
  /** `host:port` of its plain listener. */
  readonly address: string;
}

export interface KafkaCluster extends AsyncDisposable {
  /** `host:port` of every broker's plain listener. */
  readonly brokers: readonly string[];
  /** False for a cluster at given addresses; `nodes` is empty then. */
  readonly controllable: boolean;
  readonly nodes: readonly Broker[];
  /** `host:port` of every broker for a listener of `KafkaOptions.listeners`. */
  listener(name: string): readonly string[];
  dispose(): Promise<void>;
}
