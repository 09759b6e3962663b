// What the script of the overview passes around.

type Order = "name" | "objects" | "agreed" | "undecided" | "verdict" | "need";

/** What report/overview.py writes into the page, as text and as arrays; one value for each image. */
interface OverviewData {
  noun: string;
  nouns: string;
  names: string[];
  pages: (string | null)[];
  howToMake: string;
  legend: string[];
  image: string;
  agreedBy: string;
  shape: Shape | null;
  /** Whether images are judged by what one more look is worth. */
  byNeed: boolean;
  /** Images without a marking, which come last. */
  empty: number;
  arrays: ArrayTable;
  compressed: boolean;
  objects: Numbers;
  agreed: Numbers;
  undecided: Numbers;
  inDoubt: Numbers;
  byName: Numbers;
  place: Numbers;
  good: Numbers;
  retired: Numbers;
  lookValue: Numbers;
  /** Whether the frame is that of the image, not of what was marked on it. */
  framed: Numbers;
  /** Small photographs as data URIs. */
  photographs: (string | null)[];
  frames: Numbers;
  outlineStart: Numbers;
  outlineX: Numbers;
  outlineY: Numbers;
  outlineW: Numbers;
  outlineH: Numbers;
  outlineA: Numbers;
  outlineP: Numbers;
  bars: Numbers;
  barsOfImage: number;
}

/** Which images are asked for, in what order, and which of them comes first. */
interface Asked {
  name: string;
  order: Order;
  bad: boolean;
  doubt: boolean;
  open: boolean;
  first: number;
}

/** The overview has no map: of outlines.js it uses `trace` alone. */
declare function makeGrid(x: Numbers, y: Numbers, size: Numbers): Grid;
