// What the script of the review passes around.

interface Placed {
  x: number;
  y: number;
  w: number;
  h: number;
  a: number;
}

interface MarkShown extends Placed {
  id: string;
  expert: number;
  says: string;
  asked: boolean;
}

interface ObjectShown extends Placed {
  members: number[];
}

interface Option {
  decision: string;
  items: string[];
  share: number | null;
  objects: ObjectShown[];
}

/** What review/cases.py lays out. */
interface ReviewCase {
  id: string;
  about: string;
  items: string[];
  image: string;
  why: string;
  photo: string | null;
  shape: Shape | null;
  lanes: number[];
  fields: { name: string; cells: string[] }[] | null;
  shown: MarkShown[];
  options: Option[];
}

interface ReviewNumber extends Interval {
  name: string;
}

interface Review {
  experts: string[];
  numbers: ReviewNumber[];
  cases: ReviewCase[];
  version: number;
}

interface Decision {
  decision: string;
  items: string[];
  by: string;
  note: string;
  value: string;
}

interface Decided extends Decision {
  when: string;
}

interface Conflict {
  reason: string;
  decisions: Decided[];
}

interface ReviewState {
  version: number;
  updating: boolean;
  trouble: string;
  kept: number;
  inPosterior: number | null;
  people: { [name: string]: number };
  numbers: ReviewNumber[];
  conflicts: Conflict[];
  own: Decided[];
}

interface Keeper {
  cases(by: string): Promise<Review>;
  state(by: string): Promise<ReviewState>;
  decide(row: Decision): Promise<void>;
  save(): Promise<string>;
}

interface Controls {
  by: HTMLInputElement;
  blind: HTMLInputElement;
  note: HTMLInputElement;
  skip: HTMLButtonElement;
  undo: HTMLButtonElement;
  save: HTMLButtonElement;
}
