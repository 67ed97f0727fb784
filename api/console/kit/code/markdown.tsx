import type { ReactNode } from 'react'
import './markdown.css'

/** The number of characters that are read: a text of a user must not hold up the page. */
const MAX_LENGTH = 20_000

/**
 * A text with the Markdown that notes are written in: headings, lists, quotes, code, emphasis and links. Everything else
 * is text, HTML too; a picture from elsewhere is a link to it.
 */
export function Markdown({ text }: { text: string }) {
  return <div className="markdown">{readBlocks(text.slice(0, MAX_LENGTH))}</div>
}

function readBlocks(text: string): ReactNode[] {
  const lines = text.replaceAll('\r\n', '\n').split('\n')
  const blocks: ReactNode[] = []
  const take = (test: (line: string) => boolean) => {
    const taken: string[] = []
    while (lines.length > 0 && test(lines[0]!)) taken.push(lines.shift()!)
    return taken
  }
  while (lines.length > 0) {
    const key = blocks.length
    const line = lines[0]!
    const heading = /^(#{1,6})\s+(.*)$/.exec(line)
    if (line.trim() === '') lines.shift()
    else if (line.startsWith('```')) {
      lines.shift()
      const code = take((one) => !one.startsWith('```'))
      lines.shift()
      blocks.push(<pre key={key}>{code.join('\n')}</pre>)
    } else if (heading) {
      lines.shift()
      // No heading of the page: what a user wrote has no place in its outline.
      blocks.push(
        <p key={key} className="markdown-head" data-level={Math.min(3, heading[1]!.length)}>
          {readInline(heading[2]!)}
        </p>,
      )
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      lines.shift()
      blocks.push(<hr key={key} />)
    } else if (BULLET.test(line) || NUMBER.test(line)) {
      const sign = BULLET.test(line) ? BULLET : NUMBER
      const rows = take((one) => sign.test(one) || (/^\s+\S/.test(one) && one.trim() !== ''))
      const items = rows.map((row, nth) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines of a text have no other names
        <li key={nth}>{readInline(row.replace(sign, '').trim())}</li>
      ))
      blocks.push(sign === BULLET ? <ul key={key}>{items}</ul> : <ol key={key}>{items}</ol>)
    } else if (line.startsWith('>')) {
      const quoted = take((one) => one.startsWith('>')).map((one) => one.replace(/^>\s?/, ''))
      blocks.push(<blockquote key={key}>{readInline(quoted.join('\n'))}</blockquote>)
    } else {
      const rows = [lines.shift()!, ...take((one) => one.trim() !== '' && !OTHER.test(one))]
      blocks.push(<p key={key}>{readInline(rows.join('\n'))}</p>)
    }
  }
  return blocks
}

const BULLET = /^\s*[-*+]\s+/
const NUMBER = /^\s*\d{1,4}[.)]\s+/
/** Where a paragraph ends without an empty line. */
const OTHER = /^(#{1,6}\s|```|>|\s*[-*+]\s+|\s*\d{1,4}[.)]\s+)/

const INLINE = [
  /(?<code>`[^`\n]+`)/,
  /(?<link>!?\[[^\]\n]{0,300}\]\([^\s)]{1,2000}(?:\s[^)\n]{0,200})?\))/,
  /(?<bold>\*\*[^*\n]+\*\*|__[^_\n]+__)/,
  /(?<soft>\*[^*\s][^*\n]*\*|\b_[^_\s][^_\n]*_\b)/,
  /(?<bare>https?:\/\/[^\s<>)"']{1,2000})/,
]

function readInline(text: string): ReactNode[] {
  const sign = new RegExp(INLINE.map(({ source }) => source).join('|'), 'g')
  const parts: ReactNode[] = []
  let at = 0
  for (const found of text.matchAll(sign)) {
    const { code, link, bold, soft, bare } = found.groups!
    const key = found.index
    parts.push(text.slice(at, key))
    at = key + found[0].length
    if (code) parts.push(<code key={key}>{code.slice(1, -1)}</code>)
    else if (bold) parts.push(<strong key={key}>{readInline(bold.slice(2, -2))}</strong>)
    else if (soft) parts.push(<em key={key}>{readInline(soft.slice(1, -1))}</em>)
    else if (bare) parts.push(<Outward key={key} href={bare} text={bare} />)
    else if (link) {
      const [, said = '', href = ''] = /^!?\[([^\]]*)\]\(([^\s)]*)/.exec(link) ?? []
      parts.push(<Outward key={key} href={href} text={said || href} />)
    }
  }
  parts.push(text.slice(at))
  return parts
}

/** A link of a user leads to other pages only, never to a script. */
function Outward({ href, text }: { href: string; text: string }) {
  if (!/^(https?:\/\/|mailto:)/i.test(href)) return text
  return (
    <a href={href} target="_blank" rel="noopener noreferrer" className="linked nodrag" title={href}>
      {text}
    </a>
  )
}
