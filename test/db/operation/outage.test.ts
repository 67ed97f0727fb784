import pg from 'pg'
import { expect, test } from 'vitest'
import { isDatabaseError, type Judgement, judgeError, notBuilt } from '../../../db/operation/outage.ts'

const refusal = (code: string) => {
  const error = new pg.DatabaseError('cannot execute INSERT INTO secrets', 10, 'error')
  return Object.assign(error, { code, severity: 'ERROR' })
}
const system = (code: string, syscall?: string) => Object.assign(new Error(code), { code, syscall })

const STATES: Record<Judgement, string[]> = {
  away: [
    ...['08000', '08003', '08006', '08P01', '25006', '40001', '40P01', '53000', '53100', '53200', '53300'],
    ...['55000', '55006', '55P03', '57014', '57P01', '57P02', '57P03', '57P05', '58000', '58030'],
  ],
  final: [
    ...['21000', '22001', '22003', '22021', '22P05', '23502', '23503', '23505', '23514'],
    ...['42501', '42601', '42703', '42P01', '42P18', '54000', '54001', '0A000'],
  ],
  unknown: [
    '25001',
    '25P02',
    '25P03',
    '26000',
    '28000',
    '28P01',
    '2BP01',
    '3D000',
    '34000',
    'XX000',
    'F0000',
  ],
}

test.each(Object.entries(STATES))('SQLSTATEs that are %s', (judgement, codes) => {
  for (const code of codes) {
    expect([code, judgeError(refusal(code))]).toEqual([code, judgement])
    expect(isDatabaseError(refusal(code))).toBe(true)
  }
})

test.each([
  system('ECONNREFUSED', 'connect'),
  system('ECONNRESET', 'read'),
  system('EPIPE', 'write'),
  system('ETIMEDOUT'),
  system('ENOTFOUND', 'getaddrinfo'),
  system('EAI_AGAIN', 'getaddrinfo'),
  system('ENOENT', 'connect'),
  system('EMFILE', 'connect'),
  new AggregateError([system('ECONNREFUSED', 'connect'), new Error('other')]),
  new Error('Connection terminated unexpectedly'),
  new Error('Connection terminated due to connection timeout'),
  new Error('timeout exceeded when trying to connect'),
  new Error('Client has encountered a connection error and is not queryable'),
])('a connection that fails is away: %s', (error) => {
  expect(judgeError(error)).toBe('away')
  expect(isDatabaseError(error)).toBe(true)
})

test.each([
  new TypeError('x is not a function'),
  new RangeError('Invalid string length'),
  new Error('unknown key id k2'),
  system('ENOENT', 'open'),
  // Five capital letters are no SQLSTATE by themselves.
  system('EPERM'),
  system('EBUSY'),
  'a string',
  undefined,
])('what is no error of the database is final, and its message is its own: %s', (error) => {
  expect(judgeError(error)).toBe('final')
  expect(isDatabaseError(error)).toBe(false)
})

test('a statement that could not be built is final, and its message does not tell what was in it', () => {
  const error = notBuilt(new RangeError('Invalid string length'))
  expect(judgeError(error)).toBe('final')
  expect(isDatabaseError(error)).toBe(true)
  expect(error.message).not.toContain('length')
})
