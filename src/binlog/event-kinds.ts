import { EventType } from './event-header.ts';

type Kinds = ReadonlySet<number>;

/** Without what these say nothing behind them can be read. */
export const OF_THE_FILE: Kinds = new Set([
  EventType.Stop,
  EventType.Rotate,
  EventType.FormatDescription,
  EventType.Heartbeat,
  EventType.HeartbeatV2,
]);

/** What moves the position or changes how the stream is read is never inside a payload. */
export const NEVER_PACKED: Kinds = new Set([
  ...OF_THE_FILE,
  EventType.Gtid,
  EventType.AnonymousGtid,
  EventType.TaggedGtid,
  EventType.TransactionPayload,
]);

/** They may change tables. */
export const STATEMENTS: Kinds = new Set([
  EventType.Query,
  EventType.ExecuteLoadQuery,
  EventType.MariadbCompressedQuery,
]);

/** They tell of no rows. */
export const MEANINGLESS: Kinds = new Set([
  5, // an AUTO_INCREMENT value that a statement is to use
  9, // a block of a file that LOAD DATA reads
  11, // such a file is dropped
  13, // seeds of RAND()
  14, // a variable that a statement uses
  17, // such a file begins
  28, // ignorable
  29, // the statement that wrote the rows
  35, // GTIDs of the files before
  36, // group replication: a transaction's context
  37, // group replication: members change
  160, // MariaDB: the statement that wrote the rows
  161, // MariaDB: where recovery begins
  163, // MariaDB: GTIDs of the files before
  164, // MariaDB: the file is encrypted
]);
