import { crc32, deflateRawSync } from 'node:zlib'

/** A file of an archive. `says` is the size that the archive tells, if it lies. */
export type Packed = {
  name: string
  bytes: Uint8Array | string
  says?: number
  flags?: number
  method?: 0 | 8
}

/** Makes a ZIP archive, as a tool would, or one that lies about its files. */
export function makeArchive(files: Packed[]): Buffer {
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  let at = 0
  for (const { name, bytes, says, flags = 0, method = 8 } of files) {
    const plain = Buffer.from(bytes as Uint8Array)
    const packed = method === 8 ? deflateRawSync(plain) : plain
    const path = Buffer.from(name)
    const fields = Buffer.alloc(26)
    fields.writeUInt16LE(20, 0)
    fields.writeUInt16LE(flags, 2)
    fields.writeUInt16LE(method, 4)
    fields.writeUInt32LE(0x5c210000, 6)
    fields.writeUInt32LE(crc32(plain), 10)
    fields.writeUInt32LE(packed.length, 14)
    fields.writeUInt32LE(says ?? plain.length, 18)
    fields.writeUInt16LE(path.length, 22)
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), fields, path, packed])
    const place = Buffer.alloc(14)
    place.writeUInt32LE(at, 10)
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02'), Buffer.from([20, 0]), fields, place, path]))
    parts.push(local)
    at += local.length
  }
  const list = Buffer.concat(directory)
  const end = Buffer.alloc(18)
  end.writeUInt16LE(files.length, 4)
  end.writeUInt16LE(files.length, 6)
  end.writeUInt32LE(list.length, 8)
  end.writeUInt32LE(at, 12)
  return Buffer.concat([...parts, list, Buffer.from('PK\x05\x06'), end])
}

/** Makes a workbook with one sheet, of the XML of its rows. `properties` are attributes of its workbookPr. */
export function makeWorkbook(
  rows: string,
  more: { before?: string; styles?: string; properties?: string; strings?: string } = {},
): Buffer {
  const main = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main'
  const relations = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
  return makeArchive([
    {
      name: '[Content_Types].xml',
      bytes:
        '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
    },
    {
      name: 'xl/workbook.xml',
      bytes: `<workbook xmlns="${main}" xmlns:r="${relations}"><workbookPr ${more.properties ?? ''}/><sheets><sheet name="Made" sheetId="1" r:id="rId1"/></sheets></workbook>`,
    },
    {
      name: 'xl/_rels/workbook.xml.rels',
      bytes: `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="${relations}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`,
    },
    {
      name: 'xl/styles.xml',
      bytes:
        more.styles ??
        `<styleSheet xmlns="${main}"><cellXfs><xf numFmtId="0"/><xf numFmtId="22"/></cellXfs></styleSheet>`,
    },
    ...(more.strings === undefined
      ? []
      : [{ name: 'xl/sharedStrings.xml', bytes: `<sst xmlns="${main}">${more.strings}</sst>` }]),
    {
      name: 'xl/worksheets/sheet1.xml',
      bytes: `${more.before ?? ''}<worksheet xmlns="${main}"><sheetData>${rows}</sheetData></worksheet>`,
    },
  ])
}

/** Makes a PDF with a page for each of these content streams, and a stream of its own for the last object if `packed`. */
export function makePdf(streams: (string | { packed: Uint8Array })[], trailer = ''): Buffer {
  const objects: (string | Buffer)[] = [
    '<</Type/Catalog/Pages 2 0 R>>',
    `<</Type/Pages/Kids[${streams.map((_, at) => `${4 + 2 * at} 0 R`).join(' ')}]/Count ${streams.length}>>`,
    '<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>',
  ]
  for (const [at, stream] of streams.entries()) {
    const plain = typeof stream === 'string'
    const bytes = plain ? Buffer.from(stream) : Buffer.from(stream.packed)
    objects.push(
      `<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents ${5 + 2 * at} 0 R/Resources<</Font<</F1 3 0 R>>>>>>`,
      Buffer.concat([
        Buffer.from(`<</Length ${bytes.length}${plain ? '' : '/Filter/FlateDecode'}>>\nstream\n`),
        bytes,
        Buffer.from('\nendstream'),
      ]),
    )
  }
  const parts: Buffer[] = [Buffer.from('%PDF-1.4\n')]
  const places: number[] = []
  let at = parts[0]!.length
  for (const [index, object] of objects.entries()) {
    const part = Buffer.concat([
      Buffer.from(`${index + 1} 0 obj\n`),
      Buffer.from(object as string),
      Buffer.from('\nendobj\n'),
    ])
    places.push(at)
    at += part.length
    parts.push(part)
  }
  const lines = places.map((place) => `${String(place).padStart(10, '0')} 00000 n \n`).join('')
  const end = `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${lines}trailer\n<</Size ${objects.length + 1}/Root 1 0 R${trailer}>>\nstartxref\n${at}\n%%EOF`
  return Buffer.concat([...parts, Buffer.from(end)])
}

/** The content stream of a page with these lines of text. */
export function writePage(...lines: string[]): string {
  return `BT /F1 18 Tf 20 150 Td ${lines.map((line) => `(${line}) Tj 0 -30 Td`).join(' ')} ET`
}
