"""Makes the workbooks beside it, with openpyxl and xlsxwriter: python3 make.py (openpyxl 3.1, xlsxwriter 3.2)."""
import os
from datetime import date, datetime, time, timedelta

import openpyxl
import xlsxwriter

os.chdir(os.path.dirname(os.path.abspath(__file__)))
MOMENT = datetime(2026, 1, 31, 8, 30, 15, 250000)


def with_openpyxl(name, epoch):
    book = openpyxl.Workbook()
    book.epoch = epoch
    sheet = book.active
    sheet.title = "Zeiten"
    sheet.append(["day", "moment", "time", "span", "back", "n", "text", "=", "ok"])
    sheet.append([date(2026, 1, 31), MOMENT, time(12, 0), timedelta(days=1, hours=12), None, 1.5, " a\r\nb _x0041_ ", "=B2", True])
    sheet.append([date(1904, 3, 1), datetime(2026, 3, 1), time(23, 59, 59), timedelta(0), None, -7, "", "=1/2", False])
    book.create_sheet("Leer")
    book.save(name)


with_openpyxl("openpyxl1900.xlsx", openpyxl.utils.datetime.WINDOWS_EPOCH)
with_openpyxl("openpyxl1904.xlsx", openpyxl.utils.datetime.MAC_EPOCH)

FORMATS = [
    "yyyy\\-mm\\-dd;@", "[$-409]d\\-mmm\\-yyyy;@", "[$-F800]dddd\\,\\ mmmm\\ dd\\,\\ yyyy", "d.m.yy h:mm", "[$-F400]h:mm:ss\\ AM/PM",
    "h:mm", "[h]:mm", "[mm]:ss", "[ss]", "mm:ss.0", "[Red]h:mm;[Blue]-h:mm", "[h]:mm;-[h]:mm;\"-\"",
    "[<1]h:mm;[>=1]d/m/yy", "\"Day \"0", "0.00\" s\"", "#,##0.00\\ [$EUR]", "[Red]0.0", "0.0E+00", "General\" days\"", "d\"T\"", "yyyy\"年\"m\"月\"",
]
VALUES = [0, 0.5, 1.5, 59, 60, 61, 46053.354166666664, -1.5]
book = xlsxwriter.Workbook("xlsxwriter.xlsx")
sheet = book.add_worksheet("All")
sheet.write_row(0, 0, ["format", *map(str, VALUES)])
for row, code in enumerate(FORMATS, 1):
    style = book.add_format({"num_format": code})
    sheet.write_string(row, 0, code)
    for column, value in enumerate(VALUES, 1):
        sheet.write_number(row, column, value, style)
times = book.add_worksheet("Formulas")
times.write_row(0, 0, ["a", "b"])
clock = book.add_format({"num_format": "h:mm"})
span = book.add_format({"num_format": 46})
times.write_formula(1, 0, "=TIME(12,0,0)", clock, 0.5)
times.write_formula(1, 1, "=A2*3", span, 1.5)
book.close()
