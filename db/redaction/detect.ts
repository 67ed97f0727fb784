import { type MaskPii, maskCards, maskPii, type PiiKind } from './pii.ts'

export const REDACTED = '[redacted]'

type IsSecretName = (name: string) => boolean

/** Which personal data to mask, and how. */
export type Pii = { kinds: ReadonlySet<PiiKind>; mask: MaskPii }

/**
 * Masks everything in a text that looks like a secret, and the personal data that `pii` names; without `pii`
 * only card numbers. Every pattern takes time linear in the length of the text: a match can only begin at the
 * start of a sequence of its characters (that is what the lookbehinds do), or its repetitions are bounded.
 */
export function findSecrets(text: string, pii: Pii | undefined, isSecretName: IsSecretName): string {
  let clean = maskPrivateKeys(text)
  for (const [pattern, replace] of SECRETS) clean = clean.replace(pattern, replace)
  clean = maskAssignments(clean, isSecretName)
  return pii ? maskPii(clean, pii.kinds, pii.mask) : maskCards(clean, () => REDACTED)
}

type Replace = (found: string, ...groups: string[]) => string

const SECRETS: [RegExp, Replace][] = [
  // JSON Web Tokens, whose third part may be empty or cut off.
  [/(?<![\w-])eyJ[\w-]{6,}\.[\w-]{4,}(?:\.[\w-]*)?/g, () => REDACTED],
  // Tokens with a known prefix: Perdure, GitHub, GitLab, Slack, Stripe, OpenAI, npm, SendGrid, Hugging Face.
  [
    /(?<!\w)(?:sdk_|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|[sr]k_(?:live|test)_|whsec_|npm_|hf_|SG\.|sk-)[\w.-]{16,}/g,
    () => REDACTED,
  ],
  [/(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])/g, () => REDACTED],
  [/(?<![\w-])AIza[\w-]{35}(?![\w-])/g, () => REDACTED],
  [/(?<!\w)(Bearer|Basic)(\s{1,4})([\w.~+/=-]{8,})/gi, maskScheme],
  // scheme://user:password@host. A long user name without a password is taken for a token.
  [
    /(?<![a-z0-9+.-])([a-z][a-z0-9+.-]{0,30}:\/\/)([^\s/?#"'<>\\]{1,1024})@/gi,
    (found, scheme, user) => {
      if (user === REDACTED) return found
      return user?.includes(':') || (user?.length ?? 0) >= 16 ? `${scheme}${REDACTED}@` : found
    },
  ],
  [
    /([?&](?:key|code|sig|signature|sas|hmac|x-amz-(?:signature|credential|security-token)|x-goog-(?:signature|credential))=)([^\s&#"'<>\\]{16,})/gi,
    (_found, name) => `${name}${REDACTED}`,
  ],
]

// "Basic information" and "bearer authentication" are prose: a Basic credential decodes to something with a
// colon, and a Bearer token is not a plain word.
function maskScheme(found: string, scheme?: string, gap?: string, value = ''): string {
  const basic = scheme?.toLowerCase() === 'basic'
  if (basic && !Buffer.from(value, 'base64').toString('latin1').includes(':')) return found
  if (!basic && /^[a-z]{1,19}[.]?$/i.test(value)) return found
  return `${scheme}${gap}${REDACTED}`
}

const BEGIN_KEY = /-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----/g
const END_KEY = /-----END [A-Z0-9 ]{1,90}-----/g

// A loop, because a pattern with a lazy [^]*? takes quadratic time on many begins without an end. A key
// without an end is masked up to the end of the text.
function maskPrivateKeys(text: string): string {
  if (!text.includes('-----BEGIN ')) return text
  let clean = ''
  let from = 0
  for (;;) {
    BEGIN_KEY.lastIndex = from
    const begin = BEGIN_KEY.exec(text)
    if (!begin) return clean + text.slice(from)
    clean += text.slice(from, begin.index) + REDACTED
    END_KEY.lastIndex = begin.index
    if (!END_KEY.exec(text)) return clean
    from = END_KEY.lastIndex
  }
}

// `password=x`, `"apiKey": "x"`, `Cookie: a=b; c=d`. The quotes around the separator may be escaped.
const ASSIGNMENT = /(?<![\w.-])([\w.-]{3,100})((?:\\{0,3}["'])?\s{0,3}[=:]\s{0,3}(\\{0,3}["'])?)/g
const TO_LINE_END = /cookie|authorization/i
const PROSE =
  /^(?:is|are|was|must|should|may|can|cannot|has|have|had|not|no|a|an|the|it|its|this|for|to|of|in|on|or|and|wrong|bad|missing|required|invalid|expired|unknown|empty|null|undefined|true|false|none)(?=[\s.,;)]|$)/i

function maskAssignments(text: string, isSecretName: IsSecretName): string {
  let clean = ''
  let done = 0
  ASSIGNMENT.lastIndex = 0
  for (let found = ASSIGNMENT.exec(text); found; found = ASSIGNMENT.exec(text)) {
    const [, name = '', separator = '', quote] = found
    if (!isSecretName(name)) continue
    const start = ASSIGNMENT.lastIndex
    const end = findValueEnd(text, start, quote, TO_LINE_END.test(name))
    const value = text.slice(start, end)
    if (value === '' || value === REDACTED) continue
    if (!quote && /\s/.test(separator) && PROSE.test(value)) continue
    clean += text.slice(done, start) + REDACTED
    done = end
    ASSIGNMENT.lastIndex = end
  }
  return clean + text.slice(done)
}

const STOPS = /[\s"'&;,\\<>]/g
const LINE_STOPS = /[\r\n"'\\]/g

function findValueEnd(text: string, start: number, quote: string | undefined, toLineEnd: boolean): number {
  if (quote) {
    const escapes = quote.length - 1
    for (let at = start; ; at++) {
      at = text.indexOf(quote.at(-1) ?? '"', at)
      if (at < 0) return text.length
      let slashes = 0
      while (slashes < at - start && text[at - 1 - slashes] === '\\') slashes++
      if (escapes === 0 && slashes % 2 === 0) return at
      if (slashes <= escapes) return at - slashes
    }
  }
  const stops = toLineEnd ? LINE_STOPS : STOPS
  stops.lastIndex = start
  return stops.exec(text)?.index ?? text.length
}

/** Shorter secrets are masked only where they are a whole value. */
export const LEAST_PARTIAL = 6

/** All forms of the given values in which they are masked within texts, the longest first. */
export function listForms(secrets: Iterable<string>): string[] {
  const forms = new Set<string>()
  for (const secret of secrets)
    if (secret.length >= LEAST_PARTIAL && !REDACTED.includes(secret))
      for (const form of encode(secret)) forms.add(form)
  // The longest first: otherwise a short form could match inside a longer one and leave the rest of it.
  return [...forms].filter((form) => !REDACTED.includes(form)).sort((a, b) => b.length - a.length)
}

/**
 * Returns a function that masks the given values in a text, also in their URL, JSON, hex and base64 forms.
 */
export function compileSecrets(secrets: Iterable<string>): (text: string) => string {
  const given = [...secrets]
  const whole = new Set(given.filter((secret) => secret !== '' && !REDACTED.includes(secret)))
  if (whole.size === 0) return (text) => text
  const ordered = listForms(whole)
  return (text) => {
    if (whole.has(text)) return REDACTED
    let clean = text
    for (const form of ordered) if (clean.includes(form)) clean = clean.replaceAll(form, REDACTED)
    return clean
  }
}

function escapeHtml(text: string, single: string, double: string): string {
  const entities: Record<string, string> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    "'": single,
    '"': double,
  }
  return text.replace(/[&<>'"]/g, (c) => entities[c] ?? c)
}

function encode(secret: string): string[] {
  const bytes = Buffer.from(secret)
  const url = encodeURIComponent(secret.toWellFormed())
  const strict = url.replace(/[!'()*~]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
  const forms = [url, strict, strict.replaceAll('%20', '+')]
  forms.push(...forms.map((form) => form.replace(/%../g, (code) => code.toLowerCase())))
  const json = JSON.stringify(secret).slice(1, -1)
  forms.push(secret, json, JSON.stringify(json).slice(1, -1), encodeURI(secret.toWellFormed()))
  // As PHP and Python write JSON, and as templates write HTML.
  const ascii = json.replace(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
  forms.push(json.replaceAll('/', '\\/'), ascii, ascii.replaceAll('/', '\\/'))
  forms.push(escapeHtml(secret, '&#39;', '&quot;'), escapeHtml(secret, '&#x27;', '&#34;'))
  forms.push(bytes.toString('hex'), bytes.toString('hex').toUpperCase())
  // Within a longer base64 text a secret begins at one of three offsets. The characters at its edges also
  // hold bits of its neighbours, so only the inner ones are compared.
  for (const offset of [0, 1, 2]) {
    const text = Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      .replace(/=+$/, '')
    const inner = text.slice(
      offset === 0 ? 0 : offset + 1,
      (bytes.length + offset) % 3 === 0 ? undefined : -1,
    )
    if (inner.length >= 7) forms.push(inner, inner.replaceAll('+', '-').replaceAll('/', '_'))
  }
  return forms
}
