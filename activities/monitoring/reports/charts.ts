import { escapeMarkup } from '../../../workflows/texts.ts'

/** A part of a bar: `name` is said in the legend. */
export type ChartSeries = { name: string; color: string }

/** A bar of a day; one that is `faint` is there to compare. */
export type Bar = { label: string; values: number[]; faint: boolean }

export type NamedValue = { name: string; value: number; shown: string }

const WIDTH = 360
const HEIGHT = 190
const LEFT = 46
const RIGHT = 8
const TOP = 30
const BOTTOM = 24
const LINES = 4

const INK = '#1f2933'
const MUTED = '#5b6775'
const GRID = '#e3e8ee'

/** A chart with a bar of parts for each day, the first series at the bottom, as an SVG that needs no style. */
export function drawBars(series: ChartSeries[], bars: Bar[], format: (value: number) => string): string {
  const sums = bars.map(({ values }) => values.reduce((sum, value) => sum + value, 0))
  const top = findTop(Math.max(0, ...sums))
  const plot = { width: WIDTH - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM }
  const toY = (value: number) => TOP + plot.height * (1 - value / top)
  const slot = plot.width / Math.max(1, bars.length)
  const wide = Math.min(26, slot * 0.7)
  const parts = [drawLegend(series)]
  for (let line = 0; line <= LINES; line++) {
    const value = (top * line) / LINES
    if (!Number.isInteger(value) && top < LINES) continue
    const y = toY(value)
    parts.push(
      `<path d="M${LEFT} ${y}H${WIDTH - RIGHT}" stroke="${line === 0 ? MUTED : GRID}" stroke-width="1"/>`,
    )
    parts.push(writeText(LEFT - 6, y + 3.5, format(value), { anchor: 'end', color: MUTED, size: 11.5 }))
  }
  const every = Math.ceil(bars.length / 6)
  for (const [at, { label, values, faint }] of bars.entries()) {
    const x = LEFT + slot * at + (slot - wide) / 2
    let below = 0
    for (const [part, value] of values.entries()) {
      if (value > 0) {
        const y = toY(below + value)
        const height = Math.max(1, toY(below) - y)
        parts.push(
          `<rect x="${round(x)}" y="${round(y)}" width="${round(wide)}" height="${round(height)}" rx="1.5" fill="${series[part]!.color}"${faint ? ' opacity="0.35"' : ''}/>`,
        )
      }
      below += value
    }
    if ((bars.length - 1 - at) % every === 0)
      parts.push(writeText(x + wide / 2, HEIGHT - 8, label, { anchor: 'middle', color: MUTED, size: 11.5 }))
  }
  return frame(HEIGHT, parts)
}

/** A point of a day; null if there is nothing to tell. */
export type Point = { label: string; value: number | null; faint: boolean }

/** A chart with a line through the days, from -1 to 1. */
export function drawLine(points: Point[], color: string): string {
  const plot = { width: WIDTH - LEFT - RIGHT, height: HEIGHT - 2 * BOTTOM + 8 }
  const toX = (at: number) => LEFT + (plot.width * (at + 0.5)) / Math.max(1, points.length)
  const toY = (value: number) => 16 + (plot.height * (1 - value)) / 2
  const parts = [-1, -0.5, 0, 0.5, 1].flatMap((value) => [
    `<path d="M${LEFT} ${toY(value)}H${WIDTH - RIGHT}" stroke="${value === 0 ? MUTED : GRID}" stroke-width="1"/>`,
    writeText(LEFT - 6, toY(value) + 3.5, value > 0 ? `+${value}` : String(value), {
      ...{ anchor: 'end', color: MUTED, size: 11.5 },
    }),
  ])
  const every = Math.ceil(points.length / 6)
  for (const [at, { label, value, faint }] of points.entries()) {
    const before = points[at - 1]?.value ?? null
    const style = faint ? ' opacity="0.35"' : ''
    if (value !== null && before !== null)
      parts.push(
        `<path d="M${round(toX(at - 1))} ${round(toY(before))}L${round(toX(at))} ${round(toY(value))}" stroke="${color}" stroke-width="2.5"${style}/>`,
      )
    if (value !== null)
      parts.push(`<circle cx="${round(toX(at))}" cy="${round(toY(value))}" r="4" fill="${color}"${style}/>`)
    if ((points.length - 1 - at) % every === 0)
      parts.push(writeText(toX(at), HEIGHT - 8, label, { anchor: 'middle', color: MUTED, size: 11.5 }))
  }
  return frame(HEIGHT, parts)
}

/** A chart with a bar for each name, from the left to the right. */
export function drawNames(rows: NamedValue[], color: string): string {
  const most = Math.max(0, ...rows.map(({ value }) => value))
  const parts = rows.flatMap(({ name, value, shown }, at) => {
    const y = 6 + at * 34
    const width = most > 0 ? Math.max(2, ((WIDTH - 16) * value) / most) : 2
    return [
      writeText(8, y + 12, cut(name, 28), { anchor: 'start', color: INK, size: 13 }),
      writeText(WIDTH - 8, y + 12, shown, { anchor: 'end', color: INK, size: 13, bold: true }),
      `<rect x="8" y="${y + 17}" width="${WIDTH - 16}" height="8" rx="4" fill="${GRID}"/>`,
      `<rect x="8" y="${y + 17}" width="${round(width)}" height="8" rx="4" fill="${color}"/>`,
    ]
  })
  return frame(12 + rows.length * 34, parts)
}

function drawLegend(series: ChartSeries[]): string {
  let x = 8
  return series
    .map(({ name, color }) => {
      const mark = `<rect x="${x}" y="9" width="9" height="9" rx="2" fill="${color}"/>`
      const text = writeText(x + 13, 17, name, { anchor: 'start', color: INK, size: 12 })
      x += 13 + name.length * 7.4 + 12
      return mark + text
    })
    .join('')
}

function frame(height: number, parts: string[]): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}"><rect width="${WIDTH}" height="${height}" fill="#ffffff"/>${parts.join('')}</svg>`
}

type TextStyle = { anchor: 'start' | 'middle' | 'end'; color: string; size: number; bold?: boolean }

function writeText(x: number, y: number, text: string, { anchor, color, size, bold }: TextStyle): string {
  const weight = bold ? ' font-weight="bold"' : ''
  return `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}" fill="${color}" font-family="DejaVu Sans" font-size="${size}"${weight}>${escapeXml(text)}</text>`
}

/** The smallest 1, 2, 4 or 8 followed by zeros that is not below a value; 1 at least. */
function findTop(value: number): number {
  if (value <= 1) return value > 0 && value < 0.5 ? value : 1
  const power = 10 ** Math.floor(Math.log10(value))
  return [1, 2, 4, 8, 10].map((step) => step * power).find((top) => top >= value)!
}

/** A text as XML has it: characters that XML may not have are replaced. */
function escapeXml(text: string): string {
  return escapeMarkup(text.toWellFormed().replace(/[\p{Cc}\ufffe\uffff]/gu, '\ufffd'))
}

function cut(text: string, most: number): string {
  const signs = [...text.slice(0, 4 * most)]
  return signs.length > most ? `${signs.slice(0, most - 1).join('')}…` : text
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
