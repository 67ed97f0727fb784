const MIME_TYPES: Record<string, string> = {
  bmp: 'image/bmp',
  csv: 'text/csv',
  doc: 'application/msword',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  gif: 'image/gif',
  gz: 'application/gzip',
  htm: 'text/html',
  html: 'text/html',
  ics: 'text/calendar',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  json: 'application/json',
  md: 'text/markdown',
  m4a: 'audio/mp4',
  mov: 'video/quicktime',
  mp3: 'audio/mpeg',
  mp4: 'video/mp4',
  oga: 'audio/ogg',
  ods: 'application/vnd.oasis.opendocument.spreadsheet',
  ogg: 'audio/ogg',
  pdf: 'application/pdf',
  png: 'image/png',
  pptx: 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  svg: 'image/svg+xml',
  tif: 'image/tiff',
  txt: 'text/plain',
  wav: 'audio/wav',
  webm: 'video/webm',
  webp: 'image/webp',
  xls: 'application/vnd.ms-excel',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  xml: 'application/xml',
  zip: 'application/zip',
}

const UNKNOWN = 'application/octet-stream'

/** The type that the end of a file's name says. */
export function guessMimeType(name: string): string {
  const extension = /\.([a-z0-9]{1,8})$/i.exec(name)?.[1]?.toLowerCase() ?? ''
  return MIME_TYPES[extension] ?? UNKNOWN
}

/** The usual ending of the names of files of this type, without a dot; undefined if it is not known. */
export function findExtension(mimeType: string): string | undefined {
  const plain = mimeType.split(';')[0]!.trim().toLowerCase()
  if (plain === UNKNOWN) return 'bin'
  return Object.entries(MIME_TYPES).findLast(([, type]) => type === plain)?.[0]
}

/** How files of some types begin. */
const STARTS: [text: RegExp, mimeType: string][] = [
  [/^\x89PNG/, 'image/png'],
  [/^\xff\xd8\xff/, 'image/jpeg'],
  [/^GIF8/, 'image/gif'],
  [/^RIFF[\s\S]{4}WEBP/, 'image/webp'],
  [/^RIFF[\s\S]{4}WAVE/, 'audio/wav'],
  [/^BM/, 'image/bmp'],
  [/^(II\*\0|MM\0\*)/, 'image/tiff'],
  [/^%PDF/, 'application/pdf'],
  [/^PK\x03\x04/, 'application/zip'],
  [/^\x1f\x8b/, 'application/gzip'],
  [/^(ID3|\xff[\xfb\xf3\xf2])/, 'audio/mpeg'],
  [/^[\s\S]{4}ftyp/, 'video/mp4'],
  [/^OggS/, 'audio/ogg'],
  [/^\x1a\x45\xdf\xa3/, 'video/webm'],
  [/^<\?xml /, 'application/xml'],
]

/** The type that the first bytes of a file say; undefined if they say none. */
function sniffMimeType(bytes: Uint8Array): string | undefined {
  const start = Buffer.from(bytes.subarray(0, 16)).toString('latin1')
  return STARTS.find(([text]) => text.test(start))?.[1]
}

/** The type of a file by its name, else by its bytes, else plain text. */
export function sniffOrGuess(name: string, bytes: Uint8Array): string {
  const guessed = guessMimeType(name)
  return guessed === UNKNOWN ? (sniffMimeType(bytes) ?? 'text/plain') : guessed
}
