/** A HashMap of byte arrays as Java writes it: entries of texts. */
export function javaMap(entries: readonly (readonly [key: string, value: string | null])[]): Buffer {
  const short = (n: number) => Buffer.from([n >> 8, n & 255]);
  const int = (n: number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeInt32BE(n);
    return bytes;
  };
  const name = (text: string) => Buffer.concat([short(text.length), Buffer.from(text)]);
  const classOfMap = Buffer.concat([
    Buffer.from([0x72]),
    name('java.util.HashMap'),
    Buffer.from('0507dac1c31660d103', 'hex'),
    short(2),
    ...[Buffer.from('F'), name('loadFactor'), Buffer.from('I'), name('threshold')],
    Buffer.from([0x78, 0x70]),
  ]);
  const classOfBytes = Buffer.concat([
    Buffer.from([0x72]),
    name('[B'),
    Buffer.from('acf317f8060854e002', 'hex'),
    short(0),
    Buffer.from([0x78, 0x70]),
  ]);
  let isFirst = true;
  const array = (text: string | null): Buffer => {
    if (text === null) return Buffer.from([0x70]);
    const bytes = Buffer.from(text);
    const ofClass = isFirst ? classOfBytes : Buffer.from('71007e0002', 'hex');
    isFirst = false;
    return Buffer.concat([Buffer.from([0x75]), ofClass, int(bytes.length), bytes]);
  };
  return Buffer.concat([
    Buffer.from('aced000573', 'hex'),
    classOfMap,
    Buffer.from('3f400000', 'hex'),
    int(12),
    Buffer.from([0x77, 8]),
    int(16),
    int(entries.length),
    ...entries.flatMap(([key, value]) => [array(key), array(value)]),
    Buffer.from([0x78]),
  ]);
}
