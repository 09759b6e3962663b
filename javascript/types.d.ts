// What the script of the explorer passes around. Comments that begin with "/** @" name these types; they
// are for the checker alone, and are left out of the pages.

/** A place, on the map or on the screen. */
type Place = [number, number];
/** Left, low, right, high. */
type Box = [number, number, number, number];
type Shade = "light" | "dark";
type Numbers = Float32Array | Float64Array | Uint8Array | Uint16Array | Uint32Array | Int8Array | Int16Array | Int32Array;
type Shape = "point" | "ellipse" | "box";

interface Interval {
  mean: number;
  lo: number;
  hi: number;
}

interface Summary extends Interval {
  samples: Float64Array;
}

/** Numbers of the report, by row and column. */
interface Table<T> {
  mean: T;
  lo: T;
  hi: T;
}

/** What describes items or objects, by row; text as codes of `Data.texts`. */
interface Column {
  name: string;
  text: boolean;
  digits: number;
  values: Numbers;
}

/** A column of the catalogue: of numbers also the spread, and the ends of the interval from there. */
interface Quantity extends Column {
  axis: 0 | 1 | null;
  length: boolean;
  label: string;
  unit: string;
  sd: Numbers;
  lo: Numbers;
  hi: Numbers;
  [end: string]: any;
}

/** Rows by owner. */
interface Lists {
  offsets: Uint32Array<ArrayBuffer>;
  order: Uint32Array<ArrayBuffer>;
  of(owner: number): Uint32Array;
}

interface Layer {
  left: number;
  low: number;
  right: number;
  high: number;
  reach: number;
  cell: number;
  columns: number;
  rows: number;
  offsets: Uint32Array;
  /** Rows, by cell. */
  outlines: Uint32Array;
}

interface Grid {
  visit(left: number, low: number, right: number, high: number, visit: (i: number) => void): void;
  count(left: number, low: number, right: number, high: number): number;
}

interface Outlines {
  shape: Shape;
  x: Numbers;
  y: Numbers;
  wide: Numbers;
  high: Numbers;
  /** In radians as the canvas counts. */
  turn: Numbers | null;
  /** The longest side, however it is turned. */
  reach: Numbers;
  grid: Grid;
}

interface Ground {
  axes: string[];
  degree: string;
  unit: string;
  perLength: number;
  stretch(y: number): number;
  shownX(x: number): number;
  mapX(x: number): number;
  beside(x: number, other: number): number;
  apart(x0: number, y0: number, x1: number, y1: number): number;
}

/** What report/explorer/embed.py writes into the page as text. */
interface About {
  noun: string;
  nouns: string;
  verb: string;
  origin: Place;
  itemShape: Shape;
  objectShape: Shape;
  hasPlaces: boolean;
  equalScales: boolean;
  /** What is in each lane, from 0 downwards, of items on a line. */
  lanes: string[] | null;
  round: boolean;
  axes: string[];
  placeDigits: number;
  units: string;
  sphere: { radius: number; cut: number; countedFrom: number } | null;
  quantities: Quantity[];
  columns: Column[];
  texts: { [name: string]: string[] };
  /** Which quantity is the size, if there are sizes. */
  size: { quantity: number; digits: number } | null;
  experts: string[];
  ids: string[] | null;
  draws: number;
  drawsUsed: number;
  minExperts: number;
  classEdges: number[];
  classNames: string[];
  sizeFrom: "members" | "mu";
  undecidedBelow: number;
  counts: Table<number[][]>;
  realObjects: { seen: Table<number[]>; missed: Table<number[]> } | null;
  sideBySide: boolean;
  expertNumbers: ExpertNumbers;
  image: { uri: string; extent: [number, number, number, number] } | null;
  /** Left, right, bottom and top of the image, which may be known without it. */
  frame: [number, number, number, number] | null;
  arrays: ArrayTable;
  compressed: boolean;
}

interface ExpertNumbers {
  compared: number[];
  jaccard: Table<number[]>;
  alone: Table<number[]>;
  missed: Table<number[]>;
  matrix: Table<number[][]>;
}

/** Type, first byte and length of each array. */
interface ArrayTable {
  [name: string]: [string, number, number];
}

/** The arrays of the page; those that end in `?` not every page has. */
interface Arrays {
  itemX: Numbers;
  itemY: Numbers;
  itemExpert: Numbers;
  itemCluster: Numbers;
  itemProbability: Numbers;
  itemSize: Numbers;
  itemReal?: Numbers;
  seatOffsets: Numbers;
  seatPlace: Numbers;
  seatDraws: Numbers;
  clusterX: Numbers;
  clusterY: Numbers;
  clusterName: Numbers;
  clusterStability: Numbers;
  clusterReal?: Numbers;
  clusterConsensus: Numbers;
  clusterWidthHi?: Numbers;
  groupOffsets: Numbers;
  groupMembers: Numbers;
  runOffsets: Numbers;
  runStart: Numbers;
  runStop: Numbers;
  sampledDraws: Numbers;
  sampledOffsets: Numbers;
  sampledLogSize: Numbers;
  sampledLogSizeLow: Numbers;
  sampledLogSizeHigh: Numbers;
  ghostDraws?: Numbers;
  ghostOffsets: Numbers;
  ghostWidth?: Numbers;
  ghostHeight?: Numbers;
  ghostAngle?: Numbers;
  /** By a name that is put together, as in data[`quantity${k}`]. */
  [name: `quantity${number}${string}`]: Numbers;
  [name: `column${number}`]: Numbers;
  [name: `ghost${string}`]: any;
  [name: `sampled${string}`]: Numbers;
  [name: `item${string}`]: any;
  [name: `cluster${string}`]: any;
}

/** What follows from both, once and for all. */
interface Data extends About, Arrays {
  count: number;
  clusters: number;
  groups: number;
  ground: Ground;
  yDown: boolean;
  items: Outlines;
  objects: Outlines;
  clusterSize: Numbers | null;
  placeSd(axis: number, k: number): number;
  clusterMembers: Lists;
  clusterExperts: Uint16Array;
  clusterLeast: Float32Array;
  groupX: Float32Array;
  groupY: Float32Array;
  groupSize: Float64Array;
  groupDraws: Uint32Array;
  groupHome: Uint32Array;
  groupReal?: Float32Array;
  groupExperts(g: number): number;
  groupsOfItem(i: number): Uint32Array;
  undecided: number[];
  sampledBefore: Uint32Array;
  ghostBefore: Uint32Array;
  /** What is remembered while nobody is switched on or off. */
  sizesKey?: string;
  groupActive: Uint16Array;
  groupActiveItems: Uint32Array;
  neighbourColours?: Map<number, Uint8Array>;
  clustersByDraw?: Float64Array;
}

/** What the reader may choose; see state.js. */
interface Choices {
  colour: Colouring;
  show: "items" | "objects" | "both";
  minExperts: number;
  realMin: number;
  pMin: number;
  pMax: number;
  dMin: number | null;
  dMax: number | null;
  singletons: boolean;
  undecided: boolean;
  region: Box | null;
  selected: number;
  compare: [number, number] | null;
  draw: number;
  ghosts: boolean;
  showImage: boolean;
  theme: Shade | null;
}

type Colouring = "count" | "cluster" | "expert" | "probability" | "real" | "size";
/** Choices that are numbers, and those that are yes or no. */
type NumberChoice = "minExperts" | "realMin" | "pMin" | "pMax" | "dMin" | "dMax" | "draw";
type FlagChoice = "singletons" | "undecided" | "showImage";

interface Changes extends Partial<Choices> {
  off?: Set<number>;
  /** An object to bring into view. */
  goTo?: number;
}

interface State extends Choices {
  data: Data;
  off: Set<number>;
  goTo?: number;
  set(changes: Changes): void;
  onChange(listener: (changed: Set<string>) => void): void;
}

interface View {
  x: number;
  y: number;
  scale: number;
  width: number;
  height: number;
  ratio: number | null;
  readonly scaleX: number;
  readonly scaleY: number;
  readonly squeeze: number;
  onMove(): void;
  toScreen(x: number, y: number): Place;
  toData(sx: number, sy: number): Place;
  bounds(): Box;
  resize(): void;
  fitScale(): number;
  fit(): void;
  go(x: number, y: number, scale?: number): void;
  pan(dx: number, dy: number): void;
  zoom(factor: number, sx?: number, sy?: number): void;
  goTo(k: number): void;
}

/** How outlines are coloured; the functions give an index. */
interface Colours {
  colours: string[];
  dashes: number[][];
  names: string[];
  title: string;
  ofItem(i: number): number;
  ofCluster: ((k: number) => number) | null;
}

/** As the kinds of colouring say it; what is left out follows. */
type Colourings = Omit<Colours, "dashes" | "ofItem"> & Partial<Pick<Colours, "dashes" | "ofItem">>;

interface LayerLook {
  asDots?: boolean;
  weight?: number;
  hollow?: boolean;
}

type LevelOf = (i: number) => number;
/** Outlines, how strong each is, its colour, all colours, and the look. */
type MapLayer = [Outlines, LevelOf, LevelOf, Pick<Colours, "colours" | "dashes">, LayerLook];

interface ExplorerMap {
  items: Outlines;
  objects: Outlines;
  passing: Uint8Array;
  colours: Colours;
  detail: "outlines" | "objects" | "dots";
  refilter(): void;
  recolour(): void;
  layers(): MapLayer[];
  draw(): void;
}

interface Bar {
  length: number;
  width: number;
  text: string;
}

interface Overlay {
  hovered: number;
  dragged: Box | null;
  bar: Bar | null;
  draw(): void;
}

interface Look {
  colour: string;
  opacity: number;
  width: number;
  dash: number[];
  dot: number;
  asDots: boolean;
  hollow: boolean;
}

interface Stamp {
  half: number;
  across: Int16Array;
  down: Int16Array;
  cover: Float32Array;
}

type StampShape = "dot" | "ellipse" | "box" | "point";
type Put = (x: number, y: number, a: number, b: number, turn: number) => void;

interface Sheet {
  clear(width: number, height: number): void;
  stamper(shape: StampShape, width: number, colour: number[], opacity: number): Put;
  layOver(target: CanvasRenderingContext2D): void;
}

interface Actions {
  drawingRegion(): boolean;
  startRegion(): void;
  setRegion(region: Box | null): void;
  isFull(): boolean;
  toggleFull(): void;
  letGo(): void;
  say(words: string, isWrong?: boolean): void;
}

type Later = ((...jobs: string[]) => void) & { now(...jobs: string[]): void };

interface SizePoint extends Interval {
  size: number;
}

/** How the experts compare, by number of the expert. */
interface Comparison {
  on: number[];
  count: Numbers;
  draws: number;
  jaccard: Interval[];
  alone: Interval[];
  missed: Interval[];
  pair(f: number, g: number): Interval;
}

interface Tally {
  add(question: number, start: number, stop: number): void;
  finish(): void;
  row(question: number): Int32Array;
}

interface Alternative {
  share: number;
  i: number;
  text: string;
}

/** What a search found: an object, perhaps by the row of an item, or a place. */
interface Found {
  said: string;
  row?: number;
  cluster?: number;
  x?: number;
  y?: number;
}

/** Attributes of an element; "on..." are listeners, and what is null or false is left out. */
interface Attributes {
  [name: string]: string | number | boolean | null | ((event: any) => void);
}

type Child = Node | string | null;

/** Elements of the page whose kind matters, by id without its prefix. */
interface Controls {
  outlines: HTMLCanvasElement;
  overlay: HTMLCanvasElement;
  query: HTMLInputElement;
  least: HTMLInputElement;
  "p-min": HTMLInputElement;
  "p-max": HTMLInputElement;
  "d-min": HTMLInputElement;
  "d-max": HTMLInputElement;
  real: HTMLInputElement;
  "by-experts": HTMLInputElement;
  draw: HTMLInputElement;
  image: HTMLInputElement;
  singletons: HTMLInputElement;
  undecided: HTMLInputElement;
  colour: HTMLSelectElement;
  show: HTMLSelectElement;
  table: HTMLDetailsElement;
  name: HTMLInputElement;
  order: HTMLSelectElement;
  bad: HTMLInputElement;
  doubt: HTMLInputElement;
  back: HTMLButtonElement;
  on: HTMLButtonElement;
}

interface Window {
  /** For the tests. */
  explorer: { [part: string]: any };
}

/** Not in every browser. */
interface Uint8ArrayConstructor {
  fromBase64?(text: string): Uint8Array<ArrayBuffer>;
}
