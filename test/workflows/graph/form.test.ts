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
})
