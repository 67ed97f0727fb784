import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import writeXlsxFile from 'write-excel-file/universal'
import { storeArchive } from '../../activities/files/formats/archive.ts'
import type { Answer } from './mock.ts'

const CSV = 'id,name,note\n1,Anna,"says ""hi"""\n2,Bert,\n3,Cäcilie,"a, b"\n'
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==',
  'base64',
)

/** A PDF of two pages, with two lines on the first. */
function writePdf(): Buffer {
  const page = (text: string) => `<< /Length ${text.length} >>\nstream\n${text}\nendstream`
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R 4 0 R] /Count 2 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Contents 5 0 R /Resources << /Font << /F1 7 0 R >> >> >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Contents 6 0 R /Resources << /Font << /F1 7 0 R >> >> >>',
    page('BT /F1 18 Tf 20 250 Td (Invoice 42) Tj 0 -30 Td (Total: 99.50 EUR) Tj ET'),
    page('BT /F1 18 Tf 20 250 Td (Second page) Tj ET'),
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    '<< /Title (An invoice) /Author (Anna) >>',
  ]
  let text = '%PDF-1.4\n'
  const places: number[] = []
  for (const [at, object] of objects.entries()) {
    places.push(text.length)
    text += `${at + 1} 0 obj\n${object}\nendobj\n`
  }
  const lines = places.map((place) => `${String(place).padStart(10, '0')} 00000 n \n`).join('')
  const size = objects.length + 1
  text += `xref\n0 ${size}\n0000000000 65535 f \n${lines}trailer\n<< /Size ${size} /Root 1 0 R /Info 8 0 R >>\n`
  return Buffer.from(`${text}startxref\n${text.lastIndexOf('xref\n0')}\n%%EOF\n`)
}

async function writeBook(): Promise<Uint8Array> {
  const rows = [
    [{ value: 'id' }, { value: 'name' }, { value: 'name' }, { value: 'price' }],
    [{ value: 1 }, { value: 'Anna' }, { value: 'x' }, { value: 1.5 }],
    [{ value: 2 }, { value: 'Bert' }, null, { value: 1234567.891 }],
    [null, null, null, null],
    [{ value: 3 }, { value: 'true' }, { value: 'y' }, null],
  ]
  const made = writeXlsxFile(rows as never, { sheet: 'People' } as never)
  const blob = await (made as unknown as { toBlob(): Promise<Blob> }).toBlob()
  return new Uint8Array(await blob.arrayBuffer())
}

const XLSX = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'
const FILES: Record<string, () => [type: string, bytes: Uint8Array | Promise<Uint8Array>]> = {
  'people.csv': () => ['text/csv; charset=utf-8', Buffer.from(CSV)],
  'semi.csv': () => ['text/csv', Buffer.from('\ufeffa;b\n1;"x;y"\n\n2;z\n')],
  'odd.csv': () => ['text/csv', Buffer.from('a,b\n1,2\n3\n4,5\n')],
  'latin.txt': () => ['text/plain', Buffer.from('caf\xe9', 'latin1')],
  'data.json': () => ['application/json', Buffer.from('{"a": [1, 2], "b": {"c": "d"}}')],
  'bad.json': () => ['text/plain', Buffer.from('no json')],
  'page.html': () => ['text/html', Buffer.from('<h1>Hello <b>you</b></h1><p class="x">one</p><p>two</p>')],
  'note.xml': () => ['application/xml', Buffer.from('<a><b>1</b></a>')],
  'pic.png': () => ['image/png', PNG],
  'doc.pdf': () => ['application/pdf', writePdf()],
  'book.xlsx': () => [XLSX, writeBook()],
  'pack.zip': () => [
    'application/zip',
    storeArchive([
      { name: 'a.txt', bytes: Buffer.from('first') },
      { name: 'folder/b.csv', bytes: Buffer.from(CSV) },
    ]),
  ],
  'pack.txt.gz': () => ['application/gzip', gzipSync(Buffer.from('packed text'))],
}

/** A file of the mock server; with `as` it has that name in its Content-Disposition. */
export async function giveFile(name: string, as: string | undefined): Promise<Answer> {
  const found = FILES[name]
  if (!found) return { status: 404, json: { error: 'no such file' } }
  const [type, bytes] = found()
  const headers: Record<string, string> = { 'content-type': type }
  if (as !== undefined) headers['content-disposition'] = `attachment; filename="${as}"`
  return { bytes: await bytes, headers }
}

/** What a body has: the parts of a form with their names, types and hashes, or the whole. */
export async function describeSent(raw: Buffer, type: string): Promise<unknown> {
  const hash = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex').slice(0, 16)
  if (!type.startsWith('multipart/form-data')) return { type, bytes: raw.length, hash: hash(raw) }
  const form = await new Response(new Uint8Array(raw), { headers: { 'content-type': type } }).formData()
  const parts: unknown[] = []
  for (const [name, value] of form) {
    if (typeof value === 'string') parts.push({ name, value })
    else {
      const bytes = new Uint8Array(await value.arrayBuffer())
      parts.push({ name, file: value.name, type: value.type, bytes: bytes.length, hash: hash(bytes) })
    }
  }
  return { parts }
}
