// A file as n8n shows it in `binary`: what is told by its name and type comes from there, the size as people write it.
;(kit) => {
  const EXTENSIONS = {
    'application/gzip': 'gz',
    'application/javascript': 'js',
    'application/json': 'json',
    'application/msword': 'doc',
    'application/octet-stream': 'bin',
    'application/pdf': 'pdf',
    'application/rtf': 'rtf',
    'application/vnd.ms-excel': 'xls',
    'application/vnd.ms-powerpoint': 'ppt',
    'application/vnd.oasis.opendocument.spreadsheet': 'ods',
    'application/vnd.oasis.opendocument.text': 'odt',
    'application/vnd.openxmlformats-officedocument.presentationml.presentation': 'pptx',
    'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
    'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
    'application/x-7z-compressed': '7z',
    'application/x-tar': 'tar',
    'application/xml': 'xml',
    'application/zip': 'zip',
    'audio/mp4': 'm4a',
    'audio/mpeg': 'mpga',
    'audio/ogg': 'oga',
    'audio/wav': 'wav',
    'audio/x-wav': 'wav',
    'image/gif': 'gif',
    'image/jpeg': 'jpeg',
    'image/png': 'png',
    'image/svg+xml': 'svg',
    'image/tiff': 'tif',
    'image/webp': 'webp',
    'message/rfc822': 'eml',
    'text/calendar': 'ics',
    'text/css': 'css',
    'text/csv': 'csv',
    'text/html': 'html',
    'text/markdown': 'md',
    'text/xml': 'xml',
    'video/mp4': 'mp4',
    'video/mpeg': 'mpeg',
    'video/quicktime': 'qt',
    'video/webm': 'webm',
  }
  const TYPES = [
    [/^application\/json/, 'json'],
    [/^text\/html/, 'html'],
    [/^image\//, 'image'],
    [/^audio\//, 'audio'],
    [/^video\//, 'video'],
    [/^(text\/|application\/javascript)/, 'text'],
    [/^application\/pdf/, 'pdf'],
  ]
  const UNITS = ['B', 'kB', 'MB', 'GB']
  const writeSize = (bytes) => {
    if (bytes < 1) return `${bytes} B`
    const power = Math.min(Math.floor(Math.log10(bytes) / 3), UNITS.length - 1)
    return `${Number((bytes / 1000 ** power).toPrecision(3))} ${UNITS[power]}`
  }
  const ofName = (name) => {
    const at = name.lastIndexOf('.')
    return at > 0 && at < name.length - 1 ? name.slice(at + 1) : undefined
  }
  kit.describeFile = ({ id, name, mimeType, bytes }) => {
    const plain = mimeType.split(';')[0].trim().toLowerCase()
    const fileType = TYPES.find(([type]) => type.test(plain))?.[1]
    const fileExtension = ofName(name) ?? EXTENSIONS[plain]
    return {
      mimeType: plain,
      ...(fileType ? { fileType } : {}),
      ...(fileExtension ? { fileExtension } : {}),
      // Where its bytes are. n8n has its own word there.
      data: 'filesystem-v2',
      fileName: name,
      id,
      fileSize: writeSize(bytes),
      bytes,
    }
  }
}
