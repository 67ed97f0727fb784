/** How HTML and XML write the characters that they give a meaning. */
export const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Writes a text so that HTML and XML read it as text, within quotes too. `signs` are those to escape, if not all. */
export function escapeMarkup(text: string, signs = /[&<>"']/g): string {
  return text.replace(signs, (sign) => ENTITIES[sign]!)
}

/** Reads a part of a URL. A text that is not percent-encoded, or not in UTF-8, stays as it is. */
export function decodeUriPart(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
