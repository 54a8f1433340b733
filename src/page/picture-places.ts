import type { PartId } from './pipeline.ts';

export interface Place {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

export interface Edge {
  readonly from: PartId;
  readonly to: PartId;
  readonly path: string;
  /** The head of the arrow. */
  readonly tip: string;
}

export interface Places {
  readonly places: Readonly<Record<PartId, Place>>;
  readonly edges: readonly Edge[];
  readonly heightPx: number;
}

const NARROW_PX = 720;
const HEIGHT = 102;
const MARKS_HEIGHT = 72;
/** Room for the line that goes back to MySQL. */
const SIDE = 18;

/** Where the parts are, in pixels: beside each other where there is room, else one under the other. */
export function placesIn(width: number): Places {
  return width < NARROW_PX ? narrow(width) : wide(width);
}

function wide(width: number): Places {
  const gap = Math.min(72, Math.round(width * 0.06));
  const w = Math.floor((width - 3 * gap) / 4);
  const column = (n: number): number => n * (w + gap);
  const low = HEIGHT + 20;
  const middle = low / 2;
  const places = {
    mysql: { x: 0, y: middle, w, h: HEIGHT },
    tail: { x: column(1), y: 0, w, h: HEIGHT },
    sweep: { x: column(1), y: low, w, h: HEIGHT },
    lanes: { x: column(2), y: middle, w, h: HEIGHT },
    kafka: { x: column(3), y: middle, w, h: HEIGHT },
    marks: { x: column(1), y: low + HEIGHT + 28, w: 2 * w + gap, h: MARKS_HEIGHT },
  };
  const { mysql, tail, sweep, lanes, kafka, marks } = places;
  const bottom = marks.y + MARKS_HEIGHT / 2;
  return {
    places,
    heightPx: marks.y + MARKS_HEIGHT + 2,
    edges: [
      across('mysql', 'tail', right(mysql, -14), left(tail)),
      across('mysql', 'sweep', right(mysql, 14), left(sweep)),
      across('tail', 'lanes', right(tail), left(lanes, -14)),
      across('sweep', 'lanes', right(sweep), left(lanes, 14)),
      across('lanes', 'kafka', right(lanes), left(kafka)),
      elbow(
        'kafka',
        'marks',
        { x: kafka.x + w / 2, y: kafka.y + HEIGHT },
        { x: marks.x + marks.w, y: bottom },
        'across',
      ),
      elbow('marks', 'mysql', { x: marks.x, y: bottom }, { x: w / 2, y: mysql.y + HEIGHT }, 'up'),
    ],
  };
}

function narrow(width: number): Places {
  const w = Math.max(0, width - SIDE);
  const gap = 26;
  const half = (w - 12) / 2;
  const row = (n: number): number => n * (HEIGHT + gap);
  const places = {
    mysql: { x: SIDE, y: 0, w, h: HEIGHT },
    tail: { x: SIDE, y: row(1), w: half, h: HEIGHT },
    sweep: { x: SIDE + half + 12, y: row(1), w: half, h: HEIGHT },
    lanes: { x: SIDE, y: row(2), w, h: HEIGHT },
    kafka: { x: SIDE, y: row(3), w, h: HEIGHT },
    marks: { x: SIDE, y: row(4), w, h: MARKS_HEIGHT },
  };
  const { mysql, tail, sweep, marks } = places;
  const down = (from: PartId, to: PartId, x: number): Edge => {
    const [y, end] = [places[from].y + places[from].h, places[to].y];
    return { from, to, path: `M${x} ${y}V${end - 3}`, tip: `M${x - 5} ${end - 8}l5 6 5-6` };
  };
  const [tailX, sweepX] = [tail.x + tail.w / 2, sweep.x + sweep.w / 2];
  const [low, high] = [marks.y + MARKS_HEIGHT / 2, mysql.y + HEIGHT / 2];
  return {
    places,
    heightPx: marks.y + MARKS_HEIGHT + 2,
    edges: [
      down('mysql', 'tail', tailX),
      down('mysql', 'sweep', sweepX),
      down('tail', 'lanes', tailX),
      down('sweep', 'lanes', sweepX),
      down('lanes', 'kafka', SIDE + w / 2),
      down('kafka', 'marks', SIDE + w / 2),
      {
        ...{ from: 'marks', to: 'mysql' },
        path: `M${SIDE} ${low}H13Q5 ${low} 5 ${low - 8}V${high + 8}Q5 ${high} 13 ${high}H${SIDE - 3}`,
        tip: `M${SIDE - 8} ${high - 5}l6 5-6 5`,
      },
    ],
  };
}

interface Point {
  readonly x: number;
  readonly y: number;
}

function right({ x, y, w, h }: Place, down = 0): Point {
  return { x: x + w, y: y + h / 2 + down };
}

function left({ x, y, h }: Place, down = 0): Point {
  return { x, y: y + h / 2 + down };
}

function across(from: PartId, to: PartId, a: Point, b: Point): Edge {
  const middle = (a.x + b.x) / 2;
  const end = b.x - 3;
  const path = a.y === b.y ? `M${a.x} ${a.y}H${end}` : `M${a.x} ${a.y}C${middle} ${a.y} ${middle} ${b.y} ${end} ${b.y}`;
  return { from, to, path, tip: `M${end - 5} ${b.y - 5}l6 5-6 5` };
}

/** Down and to the left, or to the left and up. */
function elbow(from: PartId, to: PartId, a: Point, b: Point, last: 'across' | 'up'): Edge {
  if (last === 'across') {
    const path = `M${a.x} ${a.y}V${b.y - 10}Q${a.x} ${b.y} ${a.x - 10} ${b.y}H${b.x + 3}`;
    return { from, to, path, tip: `M${b.x + 8} ${b.y - 5}l-6 5 6 5` };
  }
  const path = `M${a.x} ${a.y}H${b.x + 10}Q${b.x} ${a.y} ${b.x} ${a.y - 10}V${b.y + 3}`;
  return { from, to, path, tip: `M${b.x - 5} ${b.y + 8}l5-6 5 6` };
}
