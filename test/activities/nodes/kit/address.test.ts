import { expect, test } from 'vitest'
import { joinUrl } from '../../../../activities/nodes/kit/address.ts'

const EXPRESSION = /\{\{.*?\}\}/

/** The URL that comes of its expressions' values, in their order. */
function join(url: string, ...values: string[]): string {
  const rendered: string[] = []
  for (const part of url.split(/(\{\{.*?\}\})/).filter((text) => text !== ''))
    rendered.push(EXPRESSION.test(part) ? `_${values.shift()}` : '')
  return joinUrl(url, rendered, { strict: true })
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

test.each([
  '',
  ' ',
  '\t',
  '\u200b',
  '.',
  '..',
  '%2e%2e',
  '../x',
  'a/..',
  '..\\x',
  'a%2f..',
  'a\0',
  'a%00',
  'a\nb',
])('a value of a model in a path must name something below it: %j does not', (value) => {
  expect(() => join('https://api.example.com/users/{{ $args.id }}', value)).toThrow('url has a')
  expect(() => join('https://api.example.com/users/{{ $args.id }}.json?a=b', value)).toThrow('url has a')
  expect(join('https://api.example.com/users?id={{ $args.id }}', value)).toContain('/users?id=')
})

test.each([
  ['a/b', 'a%2Fb'],
  ['...', '...'],
  ['[1,2]', '%5B1%2C2%5D'],
  ['{"a":1}', '%7B%22a%22%3A1%7D'],
  ['a..b', 'a..b'],
])('the value %j of a model stays one part of the path', (value, part) => {
  expect(join('https://api.example.com/users/{{ $args.id }}/x', value)).toBe(
    `https://api.example.com/users/${part}/x`,
  )
})

test.each([
  ['https://a.test/users/', '', '', true],
  ['https://a.test/users/', '', '/orders', true],
  ['https://a.test/users/', ' ', '?all=1', true],
  ['https://a.test/users/', '7', '', false],
  ['https://a.test/users', '', '', false],
  ['https://a.test/', '', '.json', false],
  ['https://a.test/?user=', '', '', false],
  ['https://a.test/a#', '', '/', false],
  ['https://a.test/%zz%ff', '', '/', false],
  ['', 'https://a.test/', '', false],
])('whether a part of the path is left empty is told: %s + %j + %s', (before, value, after, expected) => {
  for (const encodes of [true, false]) {
    let told = false
    joinUrl(`${before}{{ $input.x }}${after}`, before ? ['', `_${value}`, ''] : [`_${value}`, ''], {
      encodes,
      onEmpty: () => {
        told = true
      },
    })
    expect(told).toBe(expected)
  }
})
