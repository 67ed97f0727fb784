import { Marked, Renderer, type Token } from 'marked'
import { escapeMarkup } from '../../workflows/texts.ts'

/**
 * A rendered Markdown document. `title` is its first heading and `lead` its first paragraph, as plain text.
 */
export type Rendered = { title: string; lead: string; sections: Section[]; html: string }

/** A heading of the second level, as the table of contents lists it. */
type Section = { id: string; text: string }

/**
 * Renders a chapter of the guide. In the repository, links to chapters and images are relative
 * (`triggers.md#cron`, `images/execution.png`); here they become paths under `base`. HTML in the Markdown is
 * escaped, not rendered.
 */
export function renderMarkdown(markdown: string, base: string): Rendered {
  const plain = new Renderer()
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }) {
        const id = nameAnchor(text)
        const inside = this.parser.parseInline(tokens)
        if (depth === 1) return `<h1>${inside}</h1>\n`
        return `<h${depth} id="${id}"><a href="#${id}">${inside}</a></h${depth}>\n`
      },
      link({ href, tokens }) {
        return `<a href="${escapeHtml(resolveLink(href, base))}">${this.parser.parseInline(tokens)}</a>`
      },
      image({ href, text }) {
        return `<img src="${escapeHtml(resolveLink(href, base))}" alt="${escapeHtml(text)}" loading="lazy">`
      },
      // The wrapper lets a wide table scroll on a phone, without scrolling the page.
      table(token) {
        plain.parser = this.parser
        return `<div class="table">${plain.table(token)}</div>\n`
      },
      html: ({ text }) => escapeHtml(text),
    },
  })
  const tokens = marked.lexer(markdown)
  const find = (type: string) => tokens.find((token) => token.type === type)
  const sections = tokens.flatMap((token) =>
    token.type === 'heading' && token.depth === 2
      ? [{ id: nameAnchor(token.text), text: readTokenText(token) }]
      : [],
  )
  return {
    title: readTokenText(find('heading')),
    lead: readTokenText(find('paragraph')),
    sections,
    html: marked.parser(tokens),
  }
}

/** The id of a heading. It is the same as GitHub's, so that links to headings work there too. */
export function nameAnchor(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-')
}

function resolveLink(href: string, base: string): string {
  const [, chapter, anchor = ''] = /^([\w-]+)\.md(#.*)?$/.exec(href) ?? []
  if (chapter) return `${base}/${chapter}${anchor}`
  return href.startsWith('images/') ? `${base}/${href}` : href
}

// Apostrophes may stay: attributes have double quotes.
const escapeHtml = (text: string) => escapeMarkup(text, /[&<>"]/g)

/** The plain text of a token, without Markdown syntax. */
function readTokenText(token: Token | undefined): string {
  if (!token) return ''
  if ('tokens' in token && token.tokens) return token.tokens.map(readTokenText).join('')
  return 'text' in token ? token.text : ''
}
