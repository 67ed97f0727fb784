import { expect, test } from 'vitest'
import { decodeDeclared, findCharset, findTextCharset } from '../../../activities/reading/charset.ts'

const latin = (text: string) => Buffer.from(text, 'latin1')
const utf16 = (text: string, mark = '\ufeff') => Buffer.from(mark + text, 'utf16le')
const swapped = (text: string) => Buffer.from(utf16(text)).swap16()

test.each<[what: string, body: Buffer, type: string | undefined, text: string]>([
  ['nothing said', Buffer.from('ä €'), undefined, 'ä €'],
  ['a declared charset', latin('\xe4 \x80'), 'text/plain; charset=windows-1252', 'ä €'],
  ['one in quotes', latin('\xe4'), 'text/plain;format=flowed; charset="ISO-8859-1"', 'ä'],
  ['one in single quotes', latin('\xe4'), "text/plain; charset='latin1'", 'ä'],
  ['UTF-16 with a mark', utf16('ä'), 'text/plain', 'ä'],
  ['UTF-16, the other way round', swapped('ä'), 'text/plain', 'ä'],
  ['a mark before what is declared', utf16('ä'), 'text/plain; charset=utf-8', 'ä'],
  ['UTF-16 without a mark', utf16('ä', ''), 'text/plain; charset=utf-16le', 'ä'],
  ['a page with a meta', latin('<p>\xe4<meta charset=koi8-r>'), 'text/html', '<p>Д<meta charset=koi8-r>'],
  [
    'a page with http-equiv',
    latin(`<meta content="text/html; charset=iso-8859-2" http-equiv='Content-Type'>\xb1`),
    'text/html',
    `<meta content="text/html; charset=iso-8859-2" http-equiv='Content-Type'>ą`,
  ],
  [
    'a declared charset before the meta',
    Buffer.from('<meta charset="latin1">ä'),
    'text/html;charset=utf-8',
    '<meta charset="latin1">ä',
  ],
  [
    'a meta in a comment, in another attribute, or unknown',
    Buffer.from(
      '<!-- <meta charset=latin1> --><meta name=a content="charset=latin1"><meta data-charset=latin1><meta charset=klingon>ä',
    ),
    'text/html',
    '<!-- <meta charset=latin1> --><meta name=a content="charset=latin1"><meta data-charset=latin1><meta charset=klingon>ä',
  ],
  ['a meta of UTF-16 in ASCII', Buffer.from('<meta charset=utf-16>ä'), 'text/html', '<meta charset=utf-16>ä'],
  ['a meta that is no page', Buffer.from('<meta charset=latin1>ä'), 'text/plain', '<meta charset=latin1>ä'],
  [
    'XML that declares one',
    latin('<?xml version="1.0" encoding="ISO-8859-1"?><a>\xe4</a>'),
    'application/atom+xml',
    '<?xml version="1.0" encoding="ISO-8859-1"?><a>ä</a>',
  ],
])('%s', (_what, body, type, text) => {
  expect(decodeDeclared(body, type)).toEqual({ text })
})

test('a charset that is unknown is named, and read as UTF-8', () => {
  expect(decodeDeclared(Buffer.from('ä'), 'text/plain; charset=klingon')).toEqual({
    text: 'ä',
    unknown: 'klingon',
  })
  expect(decodeDeclared(Buffer.from('\ufeffä', 'utf8'), 'text/plain; charset=klingon')).toEqual({ text: 'ä' })
  expect(decodeDeclared(Buffer.from([0xff, 0xfe, 0, 0, 0x41, 0, 0, 0]), undefined).unknown).toBe('utf-32le')
  expect(findTextCharset(Buffer.from('a'), 'text/plain; charset=""')).toBeUndefined()
  expect(findCharset('text/plain; charset=utf-8 ')).toBe('utf-8')
})
