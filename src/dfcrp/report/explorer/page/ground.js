// What the map is a map of: a plane, or a sphere whose longitude and latitude are drawn as one. Sizes
// are lengths on the ground; on a map of degrees a circle is wider than high by 1 / cos(latitude).

/** The poles are drawn as if they were this near to the equator. */
const HIGHEST_LATITUDE = 89;

/** @param {Data} data */
function makeGround(data) {
  return data.sphere ? sphereOf(data.origin, data.sphere) : planeOf(data);
}

/** @param {Data} data @returns {Ground} */
function planeOf({ origin, units, axes }) {
  return {
    axes,
    degree: "",
    unit: units === "px" ? "" : ` ${units}`,
    perLength: 1,
    stretch: () => 1,
    shownX: (x) => x + origin[0],
    mapX: (x) => x - origin[0],
    beside: (x) => x,
    apart: (x0, y0, x1, y1) => Math.hypot(x0 - x1, y0 - y1),
  };
}

/** @param {Place} origin @param {NonNullable<About["sphere"]>} sphere @returns {Ground} */
function sphereOf(origin, sphere) {
  /** @param {number} x @param {number} from */
  const turn = (x, from) => from + ((((x - from) % 360) + 360) % 360);
  /** @param {number} degrees */
  const radians = (degrees) => (degrees * Math.PI) / 180;
  return {
    axes: ["longitude", "latitude"],
    degree: "°",
    unit: " km",
    /** What a length is in degrees of latitude. */
    perLength: 180 / (Math.PI * sphere.radius),
    stretch: (y) => 1 / Math.cos(radians(Math.min(Math.abs(y + origin[1]), HIGHEST_LATITUDE))),
    /** Longitudes as the data count them. */
    shownX: (x) => turn(x + origin[0], sphere.countedFrom),
    mapX: (x) => turn(x, sphere.cut) - origin[0],
    /** The same longitude within half a turn of another. */
    beside: (x, other) => turn(x, other - 180),
    /** By the haversine formula. */
    apart(x0, y0, x1, y1) {
      const [a, b] = [radians(y0 + origin[1]), radians(y1 + origin[1])];
      const h = Math.sin((b - a) / 2) ** 2 + Math.cos(a) * Math.cos(b) * Math.sin(radians(x1 - x0) / 2) ** 2;
      return 2 * sphere.radius * Math.asin(Math.sqrt(h));
    },
  };
}
