/** Column types as the log numbers them (MySQL `enum_field_types`; 140 and 141 are MariaDB's compressed columns). */
export const ColumnType = {
  Tiny: 1,
  Short: 2,
  Long: 3,
  Float: 4,
  Double: 5,
  Null: 6,
  Timestamp: 7,
  LongLong: 8,
  Int24: 9,
  Date: 10,
  Time: 11,
  DateTime: 12,
  Year: 13,
  NewDate: 14,
  VarChar: 15,
  Bit: 16,
  Timestamp2: 17,
  DateTime2: 18,
  Time2: 19,
  BlobCompressed: 140,
  VarCharCompressed: 141,
  Vector: 242,
  Json: 245,
  NewDecimal: 246,
  Enum: 247,
  Set: 248,
  Blob: 252,
  VarString: 253,
  String: 254,
  Geometry: 255,
} as const;

/**
 * How a value lies in a row: `prefix` bytes of length and then the value, or, with prefix 0, `width` bytes. For
 * strings `width` is the most that the column holds.
 */
export interface Extent {
  readonly prefix: 0 | 1 | 2 | 3 | 4;
  readonly width: number;
}

/** Bytes of metadata per column in a TABLE_MAP. */
export function metadataBytes(type: number): 0 | 1 | 2 {
  switch (type) {
    case ColumnType.Float:
    case ColumnType.Double:
    case ColumnType.Timestamp2:
    case ColumnType.DateTime2:
    case ColumnType.Time2:
    case ColumnType.BlobCompressed:
    case ColumnType.Vector:
    case ColumnType.Json:
    case ColumnType.Blob:
    case ColumnType.Geometry:
      return 1;
    case ColumnType.VarChar:
    case ColumnType.VarCharCompressed:
    case ColumnType.Bit:
    case ColumnType.NewDecimal:
    case ColumnType.Enum:
    case ColumnType.Set:
    case ColumnType.VarString:
    case ColumnType.String:
      return 2;
    default:
      return 0;
  }
}

const FIXED: Readonly<Partial<Record<number, number>>> = {
  [ColumnType.Tiny]: 1,
  [ColumnType.Short]: 2,
  [ColumnType.Long]: 4,
  [ColumnType.Float]: 4,
  [ColumnType.Double]: 8,
  [ColumnType.Null]: 0,
  [ColumnType.Timestamp]: 4,
  [ColumnType.LongLong]: 8,
  [ColumnType.Int24]: 3,
  [ColumnType.Date]: 3,
  [ColumnType.Time]: 3,
  [ColumnType.DateTime]: 8,
  [ColumnType.Year]: 1,
  [ColumnType.NewDate]: 3,
};

/**
 * Null for a type that cannot be skipped. `metadata` is the column's from the TABLE_MAP, its first byte low.
 * `type` is the real one: ENUM and SET come as STRING, with their own type in the metadata (see `realType`).
 */
export function extentOf(type: number, metadata: number): Extent | null {
  const fixed = FIXED[type];
  if (fixed !== undefined) return { prefix: 0, width: fixed };
  const low = metadata & 255;
  const high = metadata >> 8;
  switch (type) {
    case ColumnType.Timestamp2:
      return { prefix: 0, width: 4 + ((low + 1) >> 1) };
    case ColumnType.DateTime2:
      return { prefix: 0, width: 5 + ((low + 1) >> 1) };
    case ColumnType.Time2:
      return { prefix: 0, width: 3 + ((low + 1) >> 1) };
    case ColumnType.Bit:
      return { prefix: 0, width: high + (low > 0 ? 1 : 0) };
    case ColumnType.NewDecimal:
      return { prefix: 0, width: decimalBytes(low, high) };
    case ColumnType.Enum:
    case ColumnType.Set:
      return { prefix: 0, width: high };
    case ColumnType.VarChar:
    case ColumnType.VarCharCompressed:
    case ColumnType.VarString:
      return { prefix: metadata > 255 ? 2 : 1, width: metadata };
    case ColumnType.String: {
      const width = stringWidth(metadata);
      return { prefix: width > 255 ? 2 : 1, width };
    }
    case ColumnType.Blob:
    case ColumnType.BlobCompressed:
    case ColumnType.Json:
    case ColumnType.Geometry:
    case ColumnType.Vector:
      return low === 1 || low === 2 || low === 3 || low === 4 ? { prefix: low, width: 2 ** (8 * low) - 1 } : null;
    default:
      return null;
  }
}

/** STRING's metadata: the real type, and where that is STRING itself two more bits of the length, inverted. */
export function realType(type: number, metadata: number): number {
  const first = metadata & 255;
  return type === ColumnType.String && (first === ColumnType.Enum || first === ColumnType.Set) ? first : type;
}

function stringWidth(metadata: number): number {
  const first = metadata & 255;
  return (metadata >> 8) | (((first & 0x30) ^ 0x30) << 4);
}

/** Nine digits to four bytes; what is left over on either side of the point to as few bytes as hold it. */
const LEFT_OVER = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

function decimalBytes(precision: number, scale: number): number {
  const whole = precision - scale;
  return Math.floor(whole / 9) * 4 + LEFT_OVER[whole % 9] + Math.floor(scale / 9) * 4 + LEFT_OVER[scale % 9];
}

/** The types that the TABLE_MAP's signedness bits are about; YEAR is one of them (seen on 9.7 and MariaDB 10.11). */
export function hasSign(type: number): boolean {
  return isNumeric(type) || type === ColumnType.Year;
}

function isNumeric(type: number): boolean {
  return (
    type === ColumnType.Tiny ||
    type === ColumnType.Short ||
    type === ColumnType.Int24 ||
    type === ColumnType.Long ||
    type === ColumnType.LongLong ||
    type === ColumnType.NewDecimal ||
    type === ColumnType.Float ||
    type === ColumnType.Double
  );
}

export function isInteger(type: number): boolean {
  return isNumeric(type) && type !== ColumnType.NewDecimal && type !== ColumnType.Float && type !== ColumnType.Double;
}

/**
 * The types that the TABLE_MAP's character sets are about, ENUM and SET apart; VECTOR is one of them (seen on 9.7), and
 * a MariaDB's geometries are (seen on 10.11).
 */
export function isCharacter(type: number, mariadb: boolean): boolean {
  return (
    (mariadb && type === ColumnType.Geometry) ||
    type === ColumnType.VarChar ||
    type === ColumnType.VarString ||
    type === ColumnType.String ||
    type === ColumnType.Blob ||
    type === ColumnType.Vector ||
    type === ColumnType.VarCharCompressed ||
    type === ColumnType.BlobCompressed
  );
}
