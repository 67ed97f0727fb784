import { fileURLToPath } from 'node:url'
import { renderAsync } from '@resvg/resvg-js'

/** How many pixels a chart is wide: three for each of its own, so that it is sharp on phones. */
const PIXELS = 1_080

const FONTS = ['DejaVuSans.ttf', 'DejaVuSans-Bold.ttf'].map((name) =>
  fileURLToPath(import.meta.resolve(`dejavu-fonts-ttf/ttf/${name}`)),
)

/** Draws an SVG of our own as a PNG, on a thread of Node.js's pool, with a font that is part of the installation. */
export async function drawPng(svg: string): Promise<Buffer> {
  const image = await renderAsync(svg, {
    fitTo: { mode: 'width', value: PIXELS },
    font: { loadSystemFonts: false, fontFiles: FONTS, defaultFontFamily: 'DejaVu Sans' },
    background: '#ffffff',
    logLevel: 'off',
  })
  return image.asPng()
}
