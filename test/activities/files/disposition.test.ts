import { expect, test } from 'vitest'
import { readDispositionName } from '../../../activities/files/disposition.ts'

test.each([
  ['filename="=?UTF-8?B?UsOpc3Vtw6kucGRm?="', 'Résumé.pdf'],
  ['filename="=?utf-8?q?R=C3=A9sum=C3=A9_2026.pdf?="', 'Résumé 2026.pdf'],
  ['filename==?ISO-8859-1?Q?R=E9sum=E9.pdf?=', 'Résumé.pdf'],
  ['filename="=?iso-8859-1*fr?Q?R=E9sum=E9.pdf?="', 'Résumé.pdf'],
  ['filename="=?Shift_JIS?B?k/qWe4zqLnR4dA==?="', '日本語.txt'],
  ['filename="=?UTF-8?B?w6k=?= =?UTF-8?Q?t=C3=A9?= =?ISO-8859-1?Q?=E9?=.txt"', 'étéé.txt'],
  // The bytes of one character in two words.
  ['filename="=?UTF-8?B?4pw=?= =?UTF-8?B?kw==?=.txt"', '✓.txt'],
  ['filename="a =?UTF-8?Q?=C3=A9?= b.txt"', 'a é b.txt'],
  ["filename*=windows-1252''%80uro.txt", '€uro.txt'],
  ["filename*=Shift_JIS'ja'%93%FA%96%7B.txt", '日本.txt'],
  ['filename="plain.txt"; filename*=UTF-8\'\'R%C3%A9sum%C3%A9.pdf', 'Résumé.pdf'],
  // What cannot be decoded stays.
  ['filename="=?x-klingon?B?UsOpc3Vtw6kucGRm?="', '=?x-klingon?B?UsOpc3Vtw6kucGRm?='],
  ['filename="=?UTF-8?Q?=C3?=.txt"', '=?UTF-8?Q?=C3?=.txt'],
  ['filename="=?UTF-8?Q?=ZZ?=.txt"', '=?UTF-8?Q?=ZZ?=.txt'],
  ['filename="=?UTF-8?B?UsO*pc3?="', '=?UTF-8?B?UsO*pc3?='],
  ['filename="=?UTF-8?B?UsOp"', '=?UTF-8?B?UsOp'],
  ["filename=plain.txt; filename*=x-klingon''%80", 'plain.txt'],
  ["filename=plain.txt; filename*=UTF-8''%C3", 'plain.txt'],
])('the name of a file in %s', (header, name) => {
  expect(readDispositionName(`attachment; ${header}`)).toBe(name)
})

test('a long name of encoded words that never ends takes no time', () => {
  const long = `attachment; filename="${'=?UTF-8?Q?a '.repeat(300)}"`
  const since = performance.now()
  expect(readDispositionName(long)).toContain('=?UTF-8?Q?a')
  expect(performance.now() - since).toBeLessThan(200)
})
