import { expect, test } from 'vitest'
import { joinUrl } from '../../../../activities/nodes/kit/address.ts'

const EXPRESSION = /\{\{.*?\}\}/

/** The URL that comes of its expressions' values, in their order. */
function join(url: string, ...values: string[]): string {
  const rendered: string[] = []
  for (const part of url.split(/(\{\{.*?\}\})/).filter((text) => text !== ''))
    rendered.push(EXPRESSION.test(part) ? `_${values.shift()}` : '')
  return joinUrl(url, rendered, true)
}

test.each([
  ['https://api.example.com{{ $args.path }}', '@evil.example/'],
  ['https://api.example.com{{ $args.path }}', '.evil.example/'],
  ['https://api.example.com{{ $args.path }}', ':80@evil.example'],
  ['https://{{ $args.tenant }}.example.com/', 'evil.example/'],
  ['https://{{ $args.tenant }}.example.com/', 'evil.example\\'],
  ['https://{{ $args.tenant }}.example.com/', 'evil.example?'],
  ['https://{{ $args.user }}@example.com/', 'evil.example#'],
])('a value beside text of the host of %s cannot be %s', (url, value) => {
  expect(() => join(url, value)).toThrow('has an expression within its host')
})

test('a value behind another one of the host cannot lead elsewhere', () => {
  expect(() => join('{{ $vars.base }}{{ $args.path }}', 'https://api.example.com', '@evil.example')).toThrow(
    'has an expression within its host',
  )
})

test('labels, ports, and whole hosts may be values', () => {
  expect(join('https://{{ $args.tenant }}.example.com/a', 'acme-1')).toBe('https://acme-1.example.com/a')
  expect(join('http://127.0.0.1:{{ $vars.port }}/a', '8080')).toBe('http://127.0.0.1:8080/a')
  expect(join('https://{{ $vars.host }}/a', 'api.example.com:80')).toBe('https://api.example.com:80/a')
  expect(join('{{ $vars.base }}/a/{{ $args.id }}', 'https://api.example.com', 'x/y')).toBe(
    'https://api.example.com/a/x%2Fy',
  )
  expect(join('{{ $args.url }}', 'https://example.com/a?b=c')).toBe('https://example.com/a?b=c')
})
