import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Document } from '../../api/openapi.ts'
import { renderPage } from '../../api/page.ts'
import { type Service, startService } from '../service.ts'

let service: Service
let page: string
let policy: string
beforeAll(async () => {
  service = await startService()
  const answer = await service.request('/api/docs')
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toMatch(/^text\/html/)
  policy = answer.headers.get('content-security-policy') ?? ''
  page = await answer.text()
})
afterAll(() => service.stop())

test('every operation and every schema stands on the page, and the list beside it leads there', async () => {
  const document = (await (await service.request('/api/openapi.json')).json()) as Document
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

test('it needs nothing from outside, and the policy lets nothing else in', () => {
  const addresses = [...page.matchAll(/\b(?:src|href|action)="([^"]+)"/g)].map(([, address]) => address!)
  expect(addresses.filter((address) => !address.startsWith('#') && address !== '/api/openapi.json')).toEqual(
    [],
  )
  expect(page).not.toMatch(/@import|url\(/)
  expect(policy).toContain("default-src 'none'")
  expect(policy).not.toContain('unsafe')
  for (const tag of ['style', 'script']) {
    const text = new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`).exec(page)![1]!
    expect(policy).toContain(`${tag}-src 'sha256-${createHash('sha256').update(text).digest('base64')}'`)
  }
})

test('what the document says cannot become markup', async () => {
  const document = (await (await service.request('/api/openapi.json')).json()) as Document
  document.info.description = '<img src=x onerror=alert(1)> `<b>` **<i>**'
  document.paths['/api/workflows']!.get!.summary = '"><script>alert(1)</script>'
  const shown = renderPage(document, { style: '', script: '', address: 'http://127.0.0.1' })
  expect(shown).not.toContain('<img src=x')
  expect(shown).not.toContain('<script>alert')
  expect(shown).toContain('<code>&lt;b&gt;</code>')
})

test('it does not count against a rate limit', async () => {
  const left = async () => Number((await service.request('/api/docs')).headers.get('x-ratelimit-remaining'))
  expect(await left()).toBe(await left())
})
