/**
 * The header of every binlog event, and the types that mean something here.
 * MySQL source documentation, "Binlog event structure"; MariaDB knowledge base, "Replication protocol".
 */
export const EventType = {
  Query: 2,
  Stop: 3,
  Rotate: 4,
  FormatDescription: 15,
  Xid: 16,
  ExecuteLoadQuery: 18,
  TableMap: 19,
  WriteRowsV1: 23,
  UpdateRowsV1: 24,
  DeleteRowsV1: 25,
  Incident: 26,
  Heartbeat: 27,
  WriteRows: 30,
  UpdateRows: 31,
  DeleteRows: 32,
  Gtid: 33,
  AnonymousGtid: 34,
  XaPrepare: 38,
  PartialUpdateRows: 39,
  TransactionPayload: 40,
  HeartbeatV2: 41,
  TaggedGtid: 42,
  MariadbGtid: 162,
  MariadbCompressedQuery: 165,
  /** Write, update, delete as version 1 and again as version 2: 166 to 171. */
  MariadbCompressedRowsFirst: 166,
  MariadbCompressedRowsLast: 171,
} as const;

/** Types beside those: they tell of no rows. */
export const MEANINGLESS: ReadonlySet<number> = new Set([
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

/** timestamp (4), type (1), server id (4), size of the event (4), end position (4), flags (2). */
export const HEADER_BYTES = 19;
export const TYPE_AT = 4;
export const SERVER_ID_AT = 5;
export const SIZE_AT = 9;
export const END_AT = 13;
export const FLAGS_AT = 17;

/** Made up by the server for this connection: not in the file. */
export const ARTIFICIAL_FLAG = 0x20;

/** A reader that does not know the event may pass over it. */
export const IGNORABLE_FLAG = 0x80;

/** The end position when the server gives none. */
export const NO_POSITION = 0;
