import {
  type CanvasNote,
  MAX_NOTE_SIZE,
  MAX_NOTE_TEXT,
  MAX_NOTES,
  type NoteColour,
} from '../../graph/notes.ts'
import { isObject } from '../../json.ts'
import type { ProblemReporter } from '../report.ts'

/** Where n8n's sticky notes have the colours 1 to 7. */
const COLOURS: NoteColour[] = ['yellow', 'orange', 'red', 'green', 'blue', 'purple', 'grey']
const DEFAULT_SIZE = { width: 240, height: 160 }

/** n8n's sticky notes at their places. Reports what of them finds no room here. */
export function readStickyNotes(given: Record<string, unknown>[], report: ProblemReporter): CanvasNote[] {
  if (given.length > MAX_NOTES) {
    const left = given.slice(MAX_NOTES).map(({ parameters }) => Object(parameters).content)
    const message = `A workflow has at most ${MAX_NOTES} notes here, so ${left.length} of them were left out.`
    report('note', 'nodes', message, left)
  }
  return given.slice(0, MAX_NOTES).map((node, at) => {
    const parameters = isObject(node.parameters) ? node.parameters : {}
    const text = typeof parameters.content === 'string' ? parameters.content.trim() : ''
    if (text.length > MAX_NOTE_TEXT) {
      const message = `A note has at most ${MAX_NOTE_TEXT} characters here: the end of this one was left out.`
      report('note', `nodes.${String(node.name)}.parameters.content`, message, text)
    }
    const [x, y] = Array.isArray(node.position) ? node.position : []
    const measure = (value: unknown, otherwise: number) =>
      Math.min(MAX_NOTE_SIZE, Math.max(1, Math.round(readNumber(value, otherwise))))
    return {
      id: `note${at + 1}`,
      text: text.slice(0, MAX_NOTE_TEXT),
      position: { x: readNumber(x, at * 40), y: readNumber(y, at * 40) },
      size: {
        width: measure(parameters.width, DEFAULT_SIZE.width),
        height: measure(parameters.height, DEFAULT_SIZE.height),
      },
      colour: readColour(parameters.color),
    }
  })
}

function readNumber(value: unknown, otherwise: number): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : otherwise
}

/** A number of n8n's table, or a colour of its own, which becomes the one of ours that looks like it. */
function readColour(value: unknown): NoteColour {
  if (typeof value === 'number') return COLOURS[value - 1] ?? 'yellow'
  const [, hex = ''] = /^#([0-9a-f]{6})/i.exec(String(value)) ?? []
  if (hex === '') return 'yellow'
  const [r, g, b] = [0, 2, 4].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)) as [
    number,
    number,
    number,
  ]
  const [most, least] = [Math.max(r, g, b), Math.min(r, g, b)]
  if (most - least < 24) return 'grey'
  const part =
    (60 *
      (most === r
        ? (g - b) / (most - least)
        : most === g
          ? 2 + (b - r) / (most - least)
          : 4 + (r - g) / (most - least)) +
      360) %
    360
  return HUES.find(([until]) => part < until)?.[1] ?? 'red'
}

/** Where on the wheel of colours each one ends, in degrees. */
const HUES: [number, NoteColour][] = [
  [15, 'red'],
  [40, 'orange'],
  [70, 'yellow'],
  [170, 'green'],
  [255, 'blue'],
  [320, 'purple'],
]
