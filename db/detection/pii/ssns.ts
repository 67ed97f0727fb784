import { eachMatch } from '../matches.ts'
import type { Finding } from '../spans.ts'
import { findLastWord, hasContext, readBefore, readWords, wordSet } from './context.ts'

const DASH = '[-\\u2010-\\u2015\\u2212]'
const NUMBER = new RegExp(
  `(?<![\\w$€£.,]|\\d${DASH}|[\\w]${DASH})(\\d{3})(?:(${DASH}|[ .\\u00a0\\u202f])(\\d\\d)\\2|(\\d\\d))(\\d{4})(?![\\w]|${DASH}\\d|[.,]\\d)`,
  'g',
)
const SSN_WORDS = wordSet(
  'ssn|ssns|social|social security|socialsecurity|soc sec|ssid|itin|tax id|taxpayer|taxpayer id|tin|seguro social',
)
/** Words that say that a number of this form is another. */
const OTHER_WORDS = wordSet(
  'order|orders|part|parts|invoice|serial|sku|ticket|case|tracking|model|ref|reference|phone|tel|fax|mobile|call|isbn|item|product|lot|batch|catalog|catalogue|policy|docket|version|extension',
)
/** Numbers of advertisements and documentation that were never given to a person. */
const NEVER_GIVEN = new Set(['078051120', '219099999', '457555462'])

/** US social security numbers by the areas, groups and serials that are given out. */
export function findSsns(text: string): Finding<'ssn'>[] {
  const found: Finding<'ssn'>[] = []
  for (const { 0: number, 1: area = '', 2: gap, 3: group, 4: plain, 5: serial = '', index } of eachMatch(
    NUMBER,
    text,
  )) {
    if (!isGiven(area, group ?? plain ?? '', serial)) continue
    const end = index + number.length
    const isNamed = hasContext(text, index, end, SSN_WORDS)
    const isDashed = gap !== undefined && !/[ .\u00a0\u202f]/.test(gap)
    if (!isNamed) {
      if (!isDashed && !(gap && /[ \u00a0\u202f]/.test(gap))) continue
      if (findLastWord(readWords(readBefore(text, index, 28)), OTHER_WORDS) >= 0) continue
    }
    const confidence = isNamed ? 0.99 : isDashed ? 0.9 : 0.6
    found.push({ kind: 'ssn', start: index, end, confidence, rule: isNamed ? 'named_ssn' : 'ssn' })
  }
  return found
}

function isGiven(area: string, group: string, serial: string): boolean {
  if (area === '000' || area === '666' || area >= '900' || group === '00' || serial === '0000') return false
  const digits = area + group + serial
  return !NEVER_GIVEN.has(digits) && !/^(\d)\1*$/.test(digits)
}
