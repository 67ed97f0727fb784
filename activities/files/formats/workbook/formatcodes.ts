/**
 * How a number of a cell is meant by its format: a day, a day with a time, a time of day, or a time that has passed.
 * Undefined is a number.
 */
export type DateKind = 'day' | 'moment' | 'time' | 'elapsed' | undefined

/**
 * The formats of dates that a workbook does not list. Those from 27 on are other dates and times in each language of
 * East Asia.
 */
const BUILT_IN: [from: number, to: number, code: string][] = [
  [14, 17, 'm/d/yyyy'],
  [18, 21, 'h:mm:ss'],
  [22, 22, 'm/d/yyyy h:mm'],
  [27, 31, 'yyyy/m/d'],
  [32, 35, 'h:mm:ss'],
  [36, 36, 'yyyy/m/d'],
  [45, 45, 'mm:ss'],
  [46, 46, '[h]:mm:ss'],
  [47, 47, 'mm:ss.0'],
  [50, 54, 'yyyy/m/d'],
  [55, 56, 'h:mm:ss'],
  [57, 58, 'yyyy/m/d'],
]

/** One of the parts of a format that semicolons separate. */
type Section = {
  kind: DateKind
  /** Whether it writes the number itself. */
  isNumber: boolean
  isText: boolean
  fits: ((value: number) => boolean) | undefined
}

const TOKENS =
  /"[^"]*"?|\\.|_.|\*.|\[s+\]\.0+|\[[^\]]*\]?|am\/pm|a\/p|上午\/下午|general|g\/(?:通用格式|標準|标准|표준|standard)|s\.0+|e[+-]|[\s\S]/giu

const CONDITION = /^\[(<=|>=|<>|<|>|=)\s*(-?\d+(?:\.\d*)?)\]$/

const COMPARISONS: Record<string, (value: number, bound: number) => boolean> = {
  '<': (value, bound) => value < bound,
  '<=': (value, bound) => value <= bound,
  '>': (value, bound) => value > bound,
  '>=': (value, bound) => value >= bound,
  '=': (value, bound) => value === bound,
  '<>': (value, bound) => value !== bound,
}

/** The longest format that Excel takes has 255 characters, and four sections. */
const MAX_CODE = 1_000
const MAX_SECTIONS = 4

/** The code of a built-in format; undefined if it is not a format of dates. */
export function findBuiltIn(id: number): string | undefined {
  return BUILT_IN.find(([from, to]) => id >= from && id <= to)?.[2]
}

/** Reads a format's code. The function that it returns says how a number is meant. */
export function readFormatCode(code: string): (value: number) => DateKind {
  const all = splitSections(code.slice(0, MAX_CODE)).map(readSection)
  const sections = all.length > 1 ? all.filter(({ isText }) => !isText) : all
  const [first] = sections
  if (!first || sections.every(({ kind }) => kind === undefined)) return () => undefined
  return (value) => {
    const { kind, isNumber } = chooseSection(sections, value)
    // A section that has only words, such as "-" for zero, says nothing of how the number is meant.
    return kind === undefined && !isNumber ? first.kind : kind
  }
}

function chooseSection(sections: Section[], value: number): Section {
  if (sections.some(({ fits }) => fits)) {
    const others = sections.filter(({ fits }) => !fits)
    return sections.find(({ fits }) => fits?.(value)) ?? others.at(-1) ?? sections[0]!
  }
  const at = value < 0 ? 1 : value === 0 ? 2 : 0
  return sections[at] ?? sections[0]!
}

function splitSections(code: string): string[][] {
  const sections: string[][] = [[]]
  for (const [token] of code.matchAll(TOKENS)) {
    if (token !== ';') sections.at(-1)!.push(token)
    else if (sections.length < MAX_SECTIONS) sections.push([])
    else break
  }
  return sections
}

function readSection(tokens: string[]): Section {
  let [day, time, month, elapsed, isNumber, isText] = [false, false, false, false, false, false]
  let fits: Section['fits']
  for (const token of tokens) {
    const [, comparison, bound] = CONDITION.exec(token) ?? []
    if (comparison !== undefined) fits = (value) => COMPARISONS[comparison]!(value, Number(bound))
    else if (/^\[(?:h+|m+|s+)\](?:\.0+)?$/i.test(token)) elapsed = true
    else if (token === '@') isText = true
    else if (/^(?:[0#?]|e[+-]|general|g\/.+)$/iu.test(token)) isNumber = true
    else if (/^[ydegba]$/i.test(token)) day = true
    else if (/^(?:h|s|s\.0+|am\/pm|a\/p|上午\/下午)$/i.test(token)) time = true
    else if (/^m$/i.test(token)) month = true
  }
  // Without a time in the format, m is the month.
  const kind = elapsed
    ? 'elapsed'
    : day
      ? time
        ? 'moment'
        : 'day'
      : time
        ? 'time'
        : month
          ? 'day'
          : undefined
  return { kind: isNumber || isText ? undefined : kind, isNumber, isText, fits }
}
