import { type CountryCode, getCountries, parsePhoneNumberFromString } from 'libphonenumber-js/max'
import { eachMatch } from '../matches.ts'
import { readWords } from './context.ts'

/** The regions of which a text has a number with its code, and those that it names. */
export type NamedRegions = { numbered: ReadonlySet<CountryCode>; named: ReadonlySet<CountryCode> }

/** The number of international numbers of a text that are read, and of its regions that count. */
const MOST_NUMBERS = 20
const MOST_REGIONS = 6

const GLOBAL = /\+[1-9](?:[ \u00a0\u202f.()/\u2010-\u2015-]{0,3}\d){6,14}(?!\d)/g

/** Languages in which every country is known by its name, besides that of the country. */
const LANGUAGES = ['en', 'de', 'fr', 'es', 'it', 'pt', 'nl', 'pl']

/** Names of countries that are names of people and things as well. */
const AMBIGUOUS = new Set(['chad', 'jordan', 'georgia', 'jersey', 'guinea', 'man', 'mali', 'malta', 'union'])

let names: ReadonlyMap<string, CountryCode> | undefined

export function findRegions(text: string): NamedRegions {
  const numbered = new Set<CountryCode>()
  let count = 0
  for (const { 0: number } of eachMatch(GLOBAL, text)) {
    if (++count > MOST_NUMBERS || numbered.size === MOST_REGIONS) break
    const { country } = parsePhoneNumberFromString(number) ?? {}
    if (country) numbered.add(country)
  }
  names ??= listNames()
  const named = new Set<CountryCode>()
  const words = readWords(text)
  for (let at = 0; at < words.length && named.size < MOST_REGIONS; at++) {
    const word = words[at] ?? ''
    const region = names.get(word) ?? names.get(`${words[at - 1]} ${word}`)
    if (region) named.add(region)
  }
  return { numbered, named }
}

/** The names of one or two words of all countries, in lower case. */
function listNames(): Map<string, CountryCode> {
  const listed = new Map<string, CountryCode>()
  const inLanguages = LANGUAGES.map((language) => new Intl.DisplayNames([language], { type: 'region' }))
  for (const region of getCountries()) {
    const { language } = new Intl.Locale(`und-${region}`).maximize()
    const own = new Intl.DisplayNames([language], { type: 'region' })
    for (const display of [...inLanguages, own]) {
      const words = readWords(display.of(region) ?? '')
      const name = words.join(' ')
      if (words.length > 0 && words.length <= 2 && name.length >= 4 && !AMBIGUOUS.has(name))
        listed.set(name, region)
    }
  }
  return listed
}
