import { h } from './dom.js'

/** @typedef {{ number: number, size: number, totalElements: number, totalPages: number, content: any[] }} Envelope */

/** The heading of a page with what can be done there. @param {string} title @param {...(Node | false | null)} actions */
export function showHeading(title, ...actions) {
  return h(
    'div',
    { class: 'heading' },
    h('h1', { tabindex: -1 }, title),
    h('div', { class: 'actions' }, ...actions),
  )
}

/** Where a page stands: the pages above it. @param {...[string, string]} links text and address of each */
export function showCrumbs(...links) {
  return h(
    'nav',
    { class: 'crumbs', 'aria-label': 'Where you are' },
    ...links.map(([text, href]) => h('a', { href }, text)),
  )
}

/** A table; on a phone each row becomes a card with the headings beside the cells. @param {string} label @param {string[]} headings @param {Node[]} rows */
export function showTable(label, headings, rows) {
  return h(
    'div',
    { class: 'table' },
    h(
      'table',
      { 'aria-label': label },
      h('thead', null, h('tr', null, ...headings.map((text) => h('th', { scope: 'col' }, text)))),
      h('tbody', null, ...rows),
    ),
  )
}

/** One cell, named as its column is. @param {string} heading @param {...import('./dom.js').Child} children */
export function cell(heading, ...children) {
  return h('td', { 'data-heading': heading }, ...children)
}

/** Which part of a list this is, and the ways to the others. @param {Envelope} page @param {(number: number) => string} linkTo */
export function showPager(page, linkTo) {
  if (page.totalElements === 0) return h('p', { class: 'quiet' })
  const first = page.number * page.size + 1
  const last = first + page.content.length - 1
  const total = page.totalElements.toLocaleString()
  const text = page.content.length === 0 ? `None of ${total} on this page` : `${first}–${last} of ${total}`
  return h(
    'nav',
    { class: 'pager', 'aria-label': 'Pages' },
    h('span', null, text),
    step('Previous', page.number > 0 ? linkTo(Math.min(page.number, page.totalPages) - 1) : null),
    step('Next', page.number + 1 < page.totalPages ? linkTo(page.number + 1) : null),
  )
}

/** @param {string} text @param {string | null} href */
function step(text, href) {
  if (href === null) return h('span', { class: 'button small off', 'aria-hidden': 'true' }, text)
  return h('a', { class: 'button small', href }, text)
}

/** Terms and what they are. @param {[string, import('./dom.js').Child][]} facts */
export function showFacts(facts) {
  return h(
    'dl',
    { class: 'facts' },
    ...facts.map(([name, value]) => h('div', null, h('dt', null, name), h('dd', null, value))),
  )
}

/** The way to a run, by the end of its id. @param {string} id */
export function linkRun(id) {
  return h('a', { class: 'id', href: `#/executions/${id}`, title: id }, id.slice(-12))
}
