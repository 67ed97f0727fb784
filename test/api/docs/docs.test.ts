import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { ApiDocument } from '../../../api/docs/openapi.ts'
import { renderPage } from '../../../api/docs/page.ts'
import { keep } from '../../support/keep.ts'
import { shareService } from '../../support/service.ts'

const service = await keep(shareService())
const response = await service.request('/api/docs')
expect(response.status).toBe(200)
expect(response.headers.get('content-type')).toMatch(/^text\/html/)
const policy = response.headers.get('content-security-policy') ?? ''
const page = await response.text()

test('every operation and every schema is on the page, and the navigation links to each', async () => {
  const document = (await (await service.request('/api/openapi.json')).json()) as ApiDocument
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods))
  const anchors = [
    ...operations.map(({ operationId }) => operationId),
    ...Object.keys(document.components.schemas).map((name) => `schema-${name}`),
  ]
  const ids = new Set([...page.matchAll(/<article id="([^"]+)"/g)].map(([, id]) => id))
  expect(anchors.filter((id) => !ids.has(id))).toEqual([])
  const links = [...page.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id)
  expect(links.filter((id) => !ids.has(id))).toEqual([])
})

test('the page loads nothing from other origins, and its policy allows nothing from there', () => {
  const addresses = [...page.matchAll(/\b(?:src|href|action)="([^"]+)"/g)].map(([, address]) => address!)
  const own = ['/api/openapi.json', '/api/docs/guide', '/console/icon.svg']
  expect(addresses.filter((address) => !address.startsWith('#') && !own.includes(address))).toEqual([])
  expect(page).not.toMatch(/@import|url\(/)
  expect(policy).toContain("default-src 'none'")
  expect(policy).not.toContain('unsafe')
  for (const tag of ['style', 'script']) {
    const text = new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`).exec(page)![1]!
    expect(policy).toContain(`${tag}-src 'sha256-${createHash('sha256').update(text).digest('base64')}'`)
  }
})

test('nothing in the document can become markup', async () => {
  const document = (await (await service.request('/api/openapi.json')).json()) as ApiDocument
  document.info.description = '<img src=x onerror=alert(1)> `<b>` **<i>**'
  document.paths['/api/workflows']!.get!.summary = '"><script>alert(1)</script>'
  const shown = renderPage(document, { style: '', script: '', address: 'http://127.0.0.1' })
  expect(shown).not.toContain('<img src=x')
  expect(shown).not.toContain('<script>alert')
  expect(shown).toContain('<code>&lt;b&gt;</code>')
})

test('reading the page does not count against a rate limit', async () => {
  const left = async () => Number((await service.request('/api/docs')).headers.get('x-ratelimit-remaining'))
  expect(await left()).toBe(await left())
})
