import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { formSchema, readForm } from '../../../workflows/graph/form.ts'
import { describeIssues } from '../../../workflows/problem.ts'

const form = v.parse(formSchema, {
  type: 'object',
  properties: {
    mail: { type: 'string', format: 'email' },
    day: { type: 'string', format: 'date', default: '2026-01-31' },
    sizes: { type: 'array', enum: ['s', 'm'] },
    urgent: { type: 'boolean' },
    cost: { type: 'number', minimum: 0, maximum: 9.5 },
    level: { enum: [1, 2] },
  },
  required: ['mail', 'sizes'],
})

function submit(value: unknown) {
  const parsed = v.safeParse(readForm(form), value)
  return parsed.success ? parsed.output : describeIssues(parsed.issues, 'form')
}

describe('a form', () => {
  test('takes the values of its fields, fills in defaults, and drops unknown fields', () => {
    expect(submit({ mail: 'a@b.example', sizes: ['m'], level: 2, other: 1 })).toEqual({
      mail: 'a@b.example',
      sizes: ['m'],
      level: 2,
      day: '2026-01-31',
    })
  })

  test('names everything that is wrong with a response', () => {
    expect(
      submit({ mail: 'nobody', day: '31.1.', sizes: ['xl'], urgent: 'yes', cost: 10, level: '1' }),
    ).toEqual([
      { path: 'form.mail', message: 'must have the format email' },
      { path: 'form.day', message: 'must have the format date' },
      { path: 'form.sizes[0]', message: 'must be one of s, m, not "xl"' },
      { path: 'form.urgent', message: 'must be true or false, not a string' },
      { path: 'form.cost', message: 'must be at most 9.5, not 10' },
      { path: 'form.level', message: 'must be one of 1, 2, not "1"' },
    ])
    expect(submit([])).toEqual([{ path: 'form', message: 'must be an object, not an array' }])
    expect(submit({})).toEqual([
      { path: 'form.mail', message: 'is required' },
      { path: 'form.sizes', message: 'is required' },
    ])
  })

  test('refuses keywords that it would not check', () => {
    const refuse = (given: unknown) => {
      const { issues } = v.safeParse(formSchema, given)
      return issues ? describeIssues(issues, 'form').map(({ path }) => path) : []
    }
    expect(refuse({})).toEqual(['form.properties'])
    expect(refuse({ properties: { a: { pattern: '(a+)+' }, b: { type: 'object' } } })).toEqual([
      'form.properties.a.pattern',
      'form.properties.b.type',
    ])
    expect(refuse({ properties: [] })).toEqual(['form.properties'])
    expect(refuse({ properties: { a: [] } })).toEqual(['form.properties.a'])
    expect(refuse({ properties: {}, required: ['a'] })).toEqual(['form.required'])
    expect(refuse([])).toEqual(['form'])
  })

  test('takes files, radio buttons, checkboxes, passwords and hidden values, and names what does not fit', () => {
    const wide = v.parse(formSchema, {
      properties: {
        cv: { type: 'file', accept: ['.pdf', 'image/*'], maxBytes: 10 },
        more: { type: 'file', multiple: true, maxItems: 1 },
        size: { enum: ['s', 'm'], show: 'radio' },
        days: { type: 'array', enum: [1, 2, 3], show: 'checkboxes', minItems: 2 },
        secret: { type: 'string', format: 'password', minLength: 3 },
        source: { type: 'string', show: 'hidden', default: 'web' },
        hint: { show: 'note', title: 'Read this' },
      },
    })
    const read = (value: unknown) => {
      const parsed = v.safeParse(readForm(wide), value)
      return parsed.success ? parsed.output : describeIssues(parsed.issues, 'form').map(({ path }) => path)
    }
    const id = crypto.randomUUID()
    const file = (name: string, mimeType: string, bytes: number) => ({ file: { id, name, mimeType, bytes } })
    const right = {
      cv: file('A.PDF', 'text/plain', 10),
      more: [file('a', 'image/png', 9)],
      size: 'm',
      days: [3, 1],
      secret: 'abc',
    }
    expect(read({ ...right, hint: 'x' })).toEqual({ ...right, source: 'web' })
    expect(
      read({ cv: file('a.exe', 'text/plain', 11), more: [file('a', 'b', 1), file('a', 'b', 1)], days: [1] }),
    ).toEqual(['form.cv', 'form.cv', 'form.more', 'form.days'])
    expect(read({ cv: 'a.pdf', more: file('a', 'b', 1), size: 'l' })).toEqual([
      'form.cv',
      'form.more',
      'form.size',
    ])
  })

  test('refuses keywords that contradict each other', () => {
    const refuse = (field: unknown) => {
      const { issues } = v.safeParse(formSchema, { properties: { a: field } })
      return issues ? describeIssues(issues, '').map(({ path }) => path) : []
    }
    expect(refuse({ accept: ['.pdf'] })).toEqual(['properties.a.accept'])
    expect(refuse({ type: 'file', accept: ['pdf'] })).toEqual(['properties.a.accept[0]'])
    expect(refuse({ type: 'file', enum: [1], default: 1 })).toEqual([
      'properties.a.enum',
      'properties.a.default',
    ])
    expect(refuse({ type: 'file', show: 'hidden' })).toEqual(['properties.a.show'])
    expect(refuse({ show: 'radio' })).toEqual(['properties.a.show'])
    expect(refuse({ enum: ['a'], show: 'checkboxes' })).toEqual(['properties.a.show'])
    expect(refuse({ type: 'array', minItems: 3, maxItems: 2 })).toEqual(['properties.a.maxItems'])
    expect(refuse({ type: 'string', minItems: 3 })).toEqual(['properties.a.minItems'])
  })
})
