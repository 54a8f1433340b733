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
