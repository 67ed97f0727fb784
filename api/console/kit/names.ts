import { nameConstant } from './status.tsx'

const SHORT = new Set([
  'url',
  'id',
  'json',
  'html',
  'sql',
  'xml',
  'csv',
  'cc',
  'bcc',
  'utc',
  'iso',
  'bom',
  'pii',
  'mb',
  'http',
  'n8n',
  'api',
  'ca',
  'tls',
  'aws',
  'smtp',
])

/** maxBytes -> Max bytes; sourceUrl -> Source URL; timeoutMs -> Timeout (ms); credentialId -> Credential. */
export function nameKey(key: string): string {
  const words = key
    .replace(/(credential|workflow)Id$/i, '$1')
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .split(/[\s_-]+/)
    .filter(Boolean)
    .map((word) =>
      SHORT.has(word.toLowerCase()) && word !== 'n8n' ? word.toUpperCase() : word.toLowerCase(),
    )
  const unit = words.length > 1 && /^(ms|MB|seconds)$/.test(words.at(-1)!) ? ` (${words.pop()})` : ''
  const text = words.join(' ')
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${unit}`
}

const PROPER: Record<string, string> = { openai: 'OpenAI', oauth2: 'OAuth 2' }

/** HTTP_REQUEST -> HTTP request */
export function nameType(type: string): string {
  return nameConstant(type).replace(
    /\b(ai|aws|http|imap|llm|csv|json|xml|html|smtp|oauth2|openai)\b/gi,
    (word) => PROPER[word.toLowerCase()] ?? word.toUpperCase(),
  )
}
