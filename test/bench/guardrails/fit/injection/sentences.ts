import { readdirSync, readFileSync } from 'node:fs'

/**
 * A text to fit or to measure with. `source` says where it is from: nothing of one source is on both sides.
 * `weight` is how much it counts in the fit, 1 if left out.
 */
export type Sample = { text: string; attack: boolean; source: string; weight?: number }

const SEEDS = new URL('./seeds/', import.meta.url)
const HELD = new URL('./held/', import.meta.url)
const SLOT = /\{(\w+)\}/

/** What may stand for each `{slot}` of the sentences. */
function readSlots(): Map<string, string[]> {
  const lines = readLines('slots.txt').map((line) => line.split(/:\s(.*)/s))
  return new Map(
    lines.map(([name, choices]) => [name!, choices!.split(' | ').map((choice) => choice.trim())]),
  )
}

/** The lines of a file of a folder; its first one says what it holds. */
function readLines(file: string, folder = SEEDS): string[] {
  const [, ...lines] = readFileSync(new URL(file, folder), 'utf8').split('\n')
  return lines.filter((line) => line !== '')
}

/** Fills the slots of sentences with choices by chance. */
function createFiller(random: () => number): (sentence: string) => string {
  const slots = readSlots()
  return (sentence) => {
    let filled = sentence
    // A choice may itself hold a slot, and that one again.
    for (let depth = 0; depth < 3; depth++) {
      filled = filled.replaceAll(new RegExp(SLOT, 'g'), (whole, name: string) => {
        const choices = slots.get(name)
        return choices ? choices[Math.floor(random() * choices.length)]! : whole
      })
    }
    return filled
  }
}

/**
 * Our own sentences, each family a source. One with slots comes `variants` times, with other words each time, or
 * as often as its family says, but at most four times `variants`; `random` decides the words.
 */
export function readSentences(random: () => number, variants: number): Sample[] {
  const fill = createFiller(random)
  const samples = new Map<string, Sample>()
  const files = readdirSync(SEEDS).filter((file) => /^(attacks|benign)-.*\.txt$/.test(file))
  for (const file of files.sort()) {
    const attack = file.startsWith('attacks')
    let source = file
    let repeated = variants
    for (const line of readLines(file)) {
      if (line.startsWith('## ')) {
        const [family, times] = line.slice(3).split(' x')
        source = `own:${family}`
        repeated = times ? Number(times) : variants
        continue
      }
      const sentence = line.replaceAll('\\n', '\n')
      const times = SLOT.test(sentence) ? Math.min(repeated, variants * 4) : 1
      for (let time = 0; time < times; time++) {
        const text = fill(sentence)
        if (!samples.has(text)) samples.set(text, { text, attack, source })
      }
    }
  }
  return [...samples.values()]
}

/** Our own sentences to measure with, written apart from the others, each family a source. */
export function readHeld(): Sample[] {
  return ['attacks.txt', 'benign.txt'].flatMap((file) => {
    let source = file
    return readLines(file, HELD).flatMap((line): Sample[] => {
      if (!line.startsWith('## '))
        return [{ text: line.replaceAll('\\n', '\n'), attack: file.startsWith('attacks'), source }]
      source = line.slice(3)
      return []
    })
  })
}
