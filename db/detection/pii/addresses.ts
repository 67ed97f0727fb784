import { isIPv6 } from 'node:net'
import { eachMatch } from '../matches.ts'
import type { Finding } from '../spans.ts'
import { findLastWord, hasContext, readAfter, readBefore, readWords, wordSet } from './context.ts'

const OCTET = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)'
const V4 = new RegExp(
  `(?<![\\w.-]|\\d,)(${OCTET})\\.(${OCTET})\\.(${OCTET})\\.(${OCTET})(?:/(?:3[0-2]|[12]?\\d)(?![\\w./]))?(?![\\w-]|\\.\\d)`,
  'g',
)
const HEX_GROUPS =
  /(?<![\w:.])(?=[0-9a-fA-F:]{0,5}:[0-9a-fA-F]{0,4}:)(?:[0-9a-fA-F:]{1,30}:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F:]{2,39})/g
/** Addresses of small numbers that many know. */
const RESOLVERS = new Set(['1.1.1.1', '1.0.0.1', '8.8.8.8', '8.8.4.4', '9.9.9.9', '4.4.4.4'])
/** A zone and the length of a network, which may stand after an address. */
const ZONE = /%[A-Za-z0-9_.-]{1,15}/y
const NETWORK = /\/(?:12[0-8]|1[01]\d|[1-9]?\d)(?![\w./])/y

const ADDRESS_WORDS = wordSet(
  'ip|ips|ipv|ip addr|ip address|address|addr|addresses|host|hosts|server|client|remote|peer|source|src|dst|destination|gateway|dns|nameserver|subnet|cidr|ping|traceroute|listen|listening|bind|connect|connected|connection|endpoint|login|from|adresse|dirección|indirizzo',
)
/** Words whose number is no address. */
const NUMBERED = wordSet(
  'version|versions|ver|v|rv|release|rev|revision|build|firmware|driver|assembly|assemblyversion|fileversion|upgrade|upgraded|update|updated|sdk|runtime|chapter|section|sections|clause|paragraph|appendix|step|figure|table|oid|sec|kapitel|abschnitt|productversion',
)
/** The last word before a number and the signs between, or signs of a comparison, or the name of a package. */
const LAST_WORD = /([A-Za-z]{1,20})(?: to| v)?[\s.:="'(v]{0,4}$/
const COMPARED = /(?:[<>~^=§]=?\s?|[A-Za-z][\w.+-]{0,30}@)$/
const ASSIGNED = /(?:^|[^<>=!~^])[=]$/
const PRODUCT = /(?<![/\w])[A-Za-z][\w.+-]{1,30}\/$/

/** IP addresses of both versions, by a strict reading; with the network or the zone that is written after them. */
export function findAddresses(text: string): Finding<'ip_address'>[] {
  const found: Finding<'ip_address'>[] = []
  if (text.includes('.')) findV4(text, found)
  if (text.includes(':')) findV6(text, found)
  return found
}

function findV4(text: string, found: Finding<'ip_address'>[]): void {
  for (const { 0: address, 1: a, 2: b, 3: c, 4: d, index } of eachMatch(V4, text)) {
    const octets = [a, b, c, d].map(Number)
    const end = index + address.length
    if (isEverybodysV4(octets) || isVersion(text, index, end, octets)) continue
    const isNamed = hasContext(text, index, end, ADDRESS_WORDS)
    // Small numbers only are those of a chapter or of a version more often than of an address.
    const isSmall = octets.every((octet) => octet < 20) && octets[0] !== 10 && !RESOLVERS.has(address)
    const confidence = isNamed ? 0.98 : isSmall ? 0.4 : 0.95
    found.push({ kind: 'ip_address', start: index, end, confidence, rule: 'ipv4' })
  }
}

// Addresses that every machine has, such as 127.0.0.1, masks of networks and the broadcast identify no machine.
function isEverybodysV4(octets: number[]): boolean {
  const [first = 0, second] = octets
  return first === 0 || first === 127 || (first === 255 && second === 255)
}

function isVersion(text: string, start: number, end: number, octets: number[]): boolean {
  const before = readBefore(text, start, 24)
  const [, word = ''] = LAST_WORD.exec(before) ?? []
  if (NUMBERED.has(word.toLowerCase()) || findLastWord(readWords(word).slice(-1), NUMBERED) >= 0) return true
  if (COMPARED.test(before) && !ASSIGNED.test(before)) return true
  const [first = 0] = octets
  const isSmall = first < 100 || (octets[2] === 0 && octets[3] === 0)
  if (PRODUCT.test(before) && isSmall && !/^[:/]\d/.test(text.slice(end, end + 2))) return true
  // `1.2.3.4 Installation` at the beginning of a line is a heading.
  const isHeading = /(?:^|\n)[#\s]{0,8}$/.test(before) && /^\s[A-Z]/.test(readAfter(text, end, 2))
  return isHeading && octets.every((octet) => octet < 20) && first < 10
}

function findV6(text: string, found: Finding<'ip_address'>[]): void {
  for (const { 0: taken, index } of eachMatch(HEX_GROUPS, text)) {
    // A colon at the end is the sentence's.
    const address = isIPv6(taken) ? taken : taken.replace(/(?<!:):$/, '')
    let end = index + address.length
    if (!isIPv6(address) || /^[\w:]|^\.\d/.test(text.slice(end, end + 2))) continue
    if (isEverybodysV6(address) || !isWritten(text, index, end, address)) continue
    for (const more of [ZONE, NETWORK]) {
      more.lastIndex = end
      end += more.exec(text)?.[0].replace(/[.-]+$/, '').length ?? 0
    }
    found.push({ kind: 'ip_address', start: index, end, confidence: 0.97, rule: 'ipv6' })
  }
}

function isEverybodysV6(address: string): boolean {
  return /^[0:]*:0{0,3}[01]?$/.test(address) || /^(?:[0:]+:ffff:)(?:127|0)\./i.test(address)
}

// `abc::def` is a name in C++, and eight groups of two are those of a fingerprint; both read as addresses as well.
function isWritten(text: string, start: number, end: number, address: string): boolean {
  const groups = address.split(':').filter((group) => group !== '')
  if (groups.length >= 3 && groups.some((group) => group.length > 2)) return true
  if (/^(?:f[cd][0-9a-f]{2}|fe[89ab][0-9a-f]|2[0-9a-f]{3}|64):/i.test(address) && /\d/.test(address))
    return true
  if (/^::ffff:/i.test(address)) return true
  return hasContext(text, start, end, ADDRESS_WORDS) && groups.length >= 2
}
