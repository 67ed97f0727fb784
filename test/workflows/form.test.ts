import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { formSchema, readForm } from '../../workflows/form.ts'
import { describeIssues } from '../../workflows/problem.ts'

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

function answer(value: unknown) {
  const parsed = v.safeParse(readForm(form), value)
  return parsed.success ? parsed.output : describeIssues(parsed.issues, 'form')
}

describe('a form', () => {
  test('takes what it asks for, fills in defaults, and drops what it does not know', () => {
    expect(answer({ mail: 'a@b.example', sizes: ['m'], level: 2, other: 1 })).toEqual({
      ...{ mail: 'a@b.example', sizes: ['m'], level: 2, day: '2026-01-31' },
    })
  })

  test('names all that is wrong with an answer', () => {
    expect(
      answer({ mail: 'nobody', day: '31.1.', sizes: ['xl'], urgent: 'yes', cost: 10, level: '1' }),
    ).toEqual([
      { path: 'form.mail', message: 'must be of the format email' },
      { path: 'form.day', message: 'must be of the format date' },
      { path: 'form.sizes[0]', message: 'must be one of s, m' },
      { path: 'form.urgent', message: 'must be true or false' },
      { path: 'form.cost', message: 'must be at most 9.5' },
      { path: 'form.level', message: 'must be one of 1, 2' },
    ])
    expect(answer([])).toEqual([{ path: 'form', message: 'must be an object' }])
    expect(answer({})).toEqual([
      { path: 'form.mail', message: 'is required' },
      { path: 'form.sizes', message: 'is required' },
    ])
  })

  test('refuses what it would not check', () => {
    const refuse = (given: unknown) => {
      const { issues } = v.safeParse(formSchema, given)
      return issues ? describeIssues(issues, 'form').map(({ path }) => path) : []
    }
    expect(refuse({})).toEqual(['form.properties'])
    expect(refuse({ properties: { a: { pattern: '(a+)+' }, b: { type: 'object' } } })).toEqual([
      ...['form.properties.a.pattern', 'form.properties.b.type'],
    ])
    expect(refuse({ properties: [] })).toEqual(['form.properties'])
    expect(refuse({ properties: { a: [] } })).toEqual(['form.properties.a'])
    expect(refuse({ properties: {}, required: ['a'] })).toEqual(['form.required'])
    expect(refuse([])).toEqual(['form'])
  })
})
