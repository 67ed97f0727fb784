import { eachMatch } from '../matches.ts'
import type { Finding } from '../spans.ts'
import { isRandom, isStandIn } from './randomness.ts'

/** The text in place of a secret that was masked. */
export const REDACTED = '[redacted]'

const BEGIN_KEY = /-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----/g
const END_KEY = /-----END [A-Z0-9 ]{1,90}-----/g

/** Private keys in PEM, OpenSSH and PGP form. A key without an end reaches to the end of the text. */
export function findPrivateKeys(text: string): Finding<'api_key'>[] {
  const found: Finding<'api_key'>[] = []
  if (!text.includes('-----BEGIN ')) return found
  // A loop, because a pattern with a lazy [^]*? takes quadratic time on many begins without an end.
  for (let from = 0; ; ) {
    BEGIN_KEY.lastIndex = from
    const begin = BEGIN_KEY.exec(text)
    if (!begin) return found
    END_KEY.lastIndex = begin.index
    const end = END_KEY.exec(text)
    from = end ? END_KEY.lastIndex : text.length
    // The words alone, in prose about keys, are no key; they are masked all the same.
    const body = text.slice(begin.index + begin[0].length, end?.index ?? from)
    const isKey = body.replace(/\s|\\[nr]/g, '').length >= 40 && !isStandIn(body.slice(0, 200))
    found.push({
      kind: 'api_key',
      start: begin.index,
      end: from,
      confidence: isKey ? 0.98 : 0.3,
      rule: 'private_key',
    })
  }
}

const SCHEME = /(?<!\w)(?:Bearer|Basic|SSWS)\s{1,4}([\w.~+/=-]{8,})/gi
/** scheme://user:password@host */
const USER_INFO = /(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,30}:\/\/([^\s/?#"'<>\\]{1,1024})@/gi
/** Hosts of documentation, and one's own. */
const NOBODYS = /^(?:localhost|127\.|[\w.-]{0,60}\bexample(?:\.(?:com|org|net))?(?![\w.-]))/i
const SIGNED =
  /[?&](?:key|code|sig|signature|sas|hmac|x-amz-(?:signature|credential|security-token)|x-goog-(?:signature|credential))=([^\s&#"'<>\\]{16,})/gi

/** Secrets by where they stand: after the scheme of a header, before the host of a URL, under a URL's parameter. */
export function findPlaced(text: string): Finding<'api_key'>[] {
  const found: Finding<'api_key'>[] = []
  const add = (rule: string, start: number, value: string, confidence: number) =>
    found.push({ kind: 'api_key', start, end: start + value.length, confidence, rule })
  for (const { 0: whole, 1: value = '', index } of eachMatch(SCHEME, text)) {
    if (isProse(whole, value)) continue
    const isSure = isRandom(value) && !isStandIn(value)
    add('authorization', index + whole.length - value.length, value, isSure ? 0.85 : 0.4)
  }
  if (text.includes('://')) {
    for (const { 0: whole, 1: user = '', index } of eachMatch(USER_INFO, text)) {
      // A long user name without a password is taken for a token.
      if (user === REDACTED || !(user.includes(':') || user.length >= 16)) continue
      const password = user.slice(user.indexOf(':') + 1)
      // At the place of a password, a value with letters and digits need not look more random than people's passwords
      // do.
      const host = text.slice(index + whole.length, index + whole.length + 80)
      const isTyped =
        user.includes(':') && !NOBODYS.test(host) && /^(?=.*\d)(?=.*[a-z])[^${}]{6,}$/i.test(password)
      const isSure = (isRandom(password) || isTyped) && !isStandIn(password)
      add('user_of_url', index + whole.length - 1 - user.length, user, isSure ? 0.75 : 0.4)
    }
  }
  for (const { 0: whole, 1: value = '', index } of eachMatch(SIGNED, text)) {
    const confidence = isRandom(value) && !isStandIn(value) ? 0.7 : 0.4
    add('signed_url', index + whole.length - value.length, value, confidence)
  }
  return found
}

// "Basic information" and "bearer authentication" are prose: a Basic credential decodes to something with a
// colon, and a Bearer token is not a plain word.
function isProse(whole: string, value: string): boolean {
  if (/^basic/i.test(whole)) return !Buffer.from(value, 'base64').toString('latin1').includes(':')
  return /^[a-z]{1,19}[.]?$/i.test(value)
}
