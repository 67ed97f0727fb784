/** How much of a text is looked at for what it says of itself. */
const HEAD = 4_096

/**
 * The charset that HTML (by `<meta charset>`, or `http-equiv`) or XML (by its declaration) says of itself; undefined if
 * it says none, or one that is unknown: browsers pass over those too.
 */
export function findOwnCharset(bytes: Uint8Array, format: string | undefined): string | undefined {
  if (format !== 'xml' && format !== 'html') return undefined
  const head = Buffer.from(bytes.subarray(0, HEAD)).toString('latin1')
  const found = (format === 'html' ? findMetaCharset(head) : undefined) ?? findDeclared(head)
  if (found === undefined) return undefined
  try {
    const { encoding } = new TextDecoder(found)
    // Bytes that can be read as ASCII up to there are not UTF-16, whatever the text says.
    return encoding.startsWith('utf-16') ? undefined : encoding
  } catch {
    return undefined
  }
}

/** The encoding in an XML declaration. Pages of XHTML have it too. */
function findDeclared(head: string): string | undefined {
  return /^\s*<\?xml[^>]{0,200}\sencoding\s*=\s*["']([\w.:-]{1,40})["']/.exec(head)?.[1]
}

/** The charset in the first `<meta>` that has one, outside of comments. */
function findMetaCharset(head: string): string | undefined {
  const seen = head.replace(/<!--[\s\S]*?(?:-->|$)/g, '')
  for (const [, inner] of seen.matchAll(/<meta[\s/]([^>]{0,1000})/gi)) {
    const attributes = new Map<string, string>()
    for (const [, name, double, single, bare] of inner!.matchAll(ATTRIBUTE)) {
      const key = name!.toLowerCase()
      if (!attributes.has(key)) attributes.set(key, double ?? single ?? bare ?? '')
    }
    const charset = attributes.get('charset')?.trim()
    if (charset) return charset
    if (attributes.get('http-equiv')?.trim().toLowerCase() !== 'content-type') continue
    const told = /charset\s*=\s*["']?([\w.:-]{1,40})/i.exec(attributes.get('content') ?? '')?.[1]
    if (told) return told
  }
  return undefined
}

const ATTRIBUTE = /([^\s"'>/=]{1,100})(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/g
