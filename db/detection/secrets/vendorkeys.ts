import { eachMatch } from '../matches.ts'
import type { Finding } from '../spans.ts'
import { isStandIn, measureEntropy } from './randomness.ts'
import { HOOK_FORMS, MARKED_FORMS, VENDOR_FORMS } from './vendors.ts'

/** A key begins after a character that is neither letter nor digit, at a run of at least 16 characters. */
const BEGIN = '(?<![A-Za-z0-9])'
const RUN = '(?=[\\w+/=.:$~@!%?-]{16})'
const END = '(?![A-Za-z0-9])'

const forms = (list: [string, string][]) =>
  list.map(([vendor, source]) => ({ vendor, pattern: compile(source, 'y'), letter: readLiteral(source, 0) }))
const compile = (source: string, flags: string) => new RegExp(`(?:${source})${END}`, flags)

const ANY = new RegExp(`${BEGIN}${RUN}${branch(VENDOR_FORMS.map(([, source]) => source))}${END}`, 'g')
const VENDORS = forms(VENDOR_FORMS)
const MARKED = MARKED_FORMS.map(({ vendor, mark, source }) => ({
  vendor,
  mark,
  pattern: new RegExp(`(?<![\\w+/])(?:${source})${END}`, 'g'),
}))
const HOOKS = HOOK_FORMS.map(([vendor, source]) => ({
  vendor,
  pattern: new RegExp(`(?<=//)(?:${source})`, 'g'),
}))
const HOST = /hook|telegram|sentry/i

/** Beginnings of keys whose rest has not the documented form: masked, but not told. */
const LOOSE =
  /(?<!\w)(?:sdk_|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|[sr]k_(?:live|test)_|whsec_|npm_|hf_|SG\.|sk-)[\w.-]{16,}|(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])/g

/** Keys whose form says which vendor has given them. Stand-ins, such as those of documentation, have a low confidence. */
export function findVendorKeys(text: string): Finding<'api_key'>[] {
  const found: Finding<'api_key'>[] = []
  const add = (vendor: string, start: number, taken: string) => {
    // The full stop of a sentence is not the key's.
    const key = taken.replace(/\.+$/, '')
    found.push({ kind: 'api_key', start, end: start + key.length, confidence: rate(key), rule: vendor })
  }
  for (const { 0: key, index } of eachMatch(ANY, text)) add(nameVendor(text, index), index, key)
  for (const { vendor, mark, pattern } of MARKED) {
    if (text.includes(mark)) for (const { 0: key, index } of eachMatch(pattern, text)) add(vendor, index, key)
  }
  if (HOST.test(text)) {
    for (const { vendor, pattern } of HOOKS)
      for (const { 0: address, index } of eachMatch(pattern, text)) add(vendor, index, address)
  }
  for (const { 0: key, index } of eachMatch(LOOSE, text)) {
    const end = index + key.replace(/\.+$/, '').length
    found.push({ kind: 'api_key', start: index, end, confidence: 0.3, rule: 'beginning_of_key' })
  }
  return found
}

function nameVendor(text: string, at: number): string {
  const form = VENDORS.find(({ pattern, letter }) => {
    if (letter !== undefined && letter !== text[at]) return false
    pattern.lastIndex = at
    return pattern.test(text)
  })
  return form?.vendor ?? 'vendor'
}

function rate(key: string): number {
  const rest = key.slice(key.search(/[_.:~$/-]/) + 1)
  const body = rest.length >= 8 ? rest : key
  if (isStandIn(body) || isStandIn(key.slice(-20))) return 0.1
  return measureEntropy(body) < 2.5 ? 0.3 : 0.97
}

/**
 * One pattern for many, in which those that begin with the same characters stand behind a look at them: at most places of
 * a text a few looks are enough to know that none begins there. The order of those with the same beginning is kept.
 */
function branch(sources: string[], depth = 0): string {
  if (sources.length <= 2 || depth === 3) return `(?:${sources.join('|')})`
  const groups = Map.groupBy(sources, (source) => readLiteral(source, depth))
  const parts = [...groups].map(([letter, group]) => {
    if (letter === undefined || group.length === 1) return group.join('|')
    return `(?=${'[^]'.repeat(depth)}${letter})${branch(group, depth + 1)}`
  })
  return `(?:${parts.join('|')})`
}

/** The character that every match of the pattern has at a place, if it is a letter, digit or `_`. */
function readLiteral(source: string, at: number): string | undefined {
  const beginning = /^\w*/.exec(source)?.[0] ?? ''
  const isRepeated = /^[?*{+]/.test(source.slice(beginning.length))
  return at < beginning.length - (isRepeated ? 1 : 0) ? beginning[at] : undefined
}
