import { createHash } from 'node:crypto'

/**
 * The Content-Security-Policy of a page of ours with one style element: it loads nothing, runs nothing and can be in no
 * frame. `sends`: its forms go to this service; else it has none that are sent.
 */
export function writePagePolicy(style: string, { sends }: { sends: boolean }): string {
  return [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    `form-action '${sends ? 'self' : 'none'}'`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ')
}
